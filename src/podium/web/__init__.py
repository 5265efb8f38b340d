"""The page, the HTTP API and the extender: fronts that call the engine over HTTP. Needs the extra `web`."""
