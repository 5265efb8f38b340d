"""How fast Podium is: cases in the shapes of kube-scheduler's own performance suite, measured and compared."""
