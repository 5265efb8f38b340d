"""The kubectl command that gets every kind of object that any answer reads."""

from __future__ import annotations

KUBECTL_NAMES = {
    "Node": "nodes",
    "Pod": "pods",
    "Namespace": "namespaces",
    "Service": "services",
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "ReplicationController": "replicationcontrollers",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
    "CronJob": "cronjobs",
    "HorizontalPodAutoscaler": "hpa",
    "PodDisruptionBudget": "pdb",
    "PriorityClass": "priorityclasses",
    "ResourceQuota": "quota",
    "LimitRange": "limits",
    "PersistentVolume": "pv",
    "PersistentVolumeClaim": "pvc",
    "StorageClass": "storageclasses",
    "CSINode": "csinodes",
    "CSIDriver": "csidrivers",
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
}
"""kubectl's names for the kinds that any answer reads; those of devices, which v1.34 introduced, are the last."""

NOT_SERVED_BY_DEFAULT = frozenset(("DeviceTaintRule", "PodGroup"))
"""The other kinds: kubectl refuses the whole command if the API server does not serve one of the kinds."""

KUBECTL_COMMAND = f"kubectl get {','.join(KUBECTL_NAMES.values())} -A -o json > cluster.json"
