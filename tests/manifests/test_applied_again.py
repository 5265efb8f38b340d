"""A manifest over the object that an API server made of it: nothing changes, whatever the server filled in."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.running import node, written
from podium import load

Fields = dict[str, Any]

TEMPLATE = """
metadata: {labels: {app: web}}
spec:
  serviceAccountName: web
  hostNetwork: true
  priorityClassName: high
  initContainers:
  - {name: init, image: busybox}
  containers:
  - name: web
    image: registry.example/web:1.0
    ports: [{containerPort: 80, name: http}]
    env:
    - {name: COUNT, value: "1"}
    - name: NODE
      valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
    - name: LIMIT
      valueFrom: {resourceFieldRef: {resource: limits.memory}}
    readinessProbe: {httpGet: {path: /, port: http}}
    resources:
      requests: {cpu: 0.5, memory: 1024Mi, nvidia.com/gpu: 1}
      limits: {memory: 2048Mi, nvidia.com/gpu: 1}
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  tolerations: [{key: spot, value: "yes"}]
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 1
        podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: web}}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
  volumes:
  - {name: scratch, emptyDir: {sizeLimit: 1024Mi}}
  - {name: settings, configMap: {name: settings}}
  - {name: key, secret: {secretName: key}}
  - {name: host, hostPath: {path: /var}}
  - name: own
    ephemeral:
      volumeClaimTemplate:
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
"""
CONTAINER = """
imagePullPolicy: IfNotPresent
terminationMessagePath: /dev/termination-log
terminationMessagePolicy: File
resources: {}
"""
TEMPLATE_FILLED_IN = f"""
metadata: {{creationTimestamp: null}}
spec:
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  securityContext: {{}}
  serviceAccount: web
  terminationGracePeriodSeconds: 30
  initContainers: [{json.dumps(yaml.safe_load(CONTAINER))}]
  containers:
  - imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    ports: [{{protocol: TCP, hostPort: 80}}]
    env:
    - {{}}
    - valueFrom: {{fieldRef: {{apiVersion: v1}}}}
    - valueFrom: {{resourceFieldRef: {{divisor: "0"}}}}
    readinessProbe:
      failureThreshold: 3
      periodSeconds: 10
      successThreshold: 1
      timeoutSeconds: 1
      httpGet: {{scheme: HTTP}}
    resources:
      requests: {{cpu: 500m, memory: 1Gi, nvidia.com/gpu: "1"}}
      limits: {{memory: 2Gi, nvidia.com/gpu: "1"}}
  volumes:
  - emptyDir: {{sizeLimit: 1Gi}}
  - configMap: {{defaultMode: 420}}
  - secret: {{defaultMode: 420}}
  - hostPath: {{type: ""}}
  - ephemeral:
      volumeClaimTemplate:
        metadata: {{creationTimestamp: null}}
        spec: {{volumeMode: Filesystem, resources: {{requests: {{storage: 1Gi}}}}}}
"""


def object_of(api: str, kind: str, text: str) -> Fields:
    fields: Fields = yaml.safe_load(text)
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "web"}, **fields}


def templated(text: str, template: str) -> str:
    """The text with a template in the place of TEMPLATE."""
    return text.replace("TEMPLATE", json.dumps(yaml.safe_load(template)))


CASES: dict[str, tuple[str, str, str, str]] = {
    "Deployment": (
        "apps/v1",
        "Deployment",
        "spec: {selector: {matchLabels: {app: web}}, template: TEMPLATE}",
        """
        spec:
          replicas: 1
          revisionHistoryLimit: 10
          progressDeadlineSeconds: 600
          strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
          template: TEMPLATE
        """,
    ),
    "Deployment with half a strategy": (
        "apps/v1",
        "Deployment",
        "spec: {selector: {matchLabels: {app: web}}, template: TEMPLATE, strategy: {rollingUpdate: {maxSurge: 1}}}",
        """
        spec:
          replicas: 1
          strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 25%}}
          template: TEMPLATE
        """,
    ),
    "Deployment that recreates": (
        "apps/v1",
        "Deployment",
        "spec: {selector: {matchLabels: {app: web}}, template: TEMPLATE, strategy: {type: Recreate}}",
        "spec: {replicas: 1, template: TEMPLATE}",
    ),
    "ReplicaSet": (
        "apps/v1",
        "ReplicaSet",
        "spec: {selector: {matchLabels: {app: web}}, template: TEMPLATE}",
        "spec: {replicas: 1, template: TEMPLATE}",
    ),
    "ReplicationController": (
        "v1",
        "ReplicationController",
        "spec: {template: TEMPLATE}",
        "{metadata: {labels: {app: web}}, spec: {replicas: 1, selector: {app: web}, template: TEMPLATE}}",
    ),
    "StatefulSet": (
        "apps/v1",
        "StatefulSet",
        """
        spec:
          serviceName: web
          selector: {matchLabels: {app: web}}
          template: TEMPLATE
          volumeClaimTemplates:
          - metadata: {name: data}
            spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2048Mi}}}
        """,
        """
        spec:
          replicas: 1
          podManagementPolicy: OrderedReady
          revisionHistoryLimit: 10
          persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}
          updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}
          template: TEMPLATE
          volumeClaimTemplates:
          - apiVersion: v1
            kind: PersistentVolumeClaim
            metadata: {creationTimestamp: null}
            spec: {volumeMode: Filesystem, resources: {requests: {storage: 2Gi}}}
            status: {phase: Pending}
        """,
    ),
    "StatefulSet that may miss several": (
        "apps/v1",
        "StatefulSet",
        "spec: {serviceName: web, selector: {matchLabels: {app: web}}, template: TEMPLATE}",
        """
        spec:
          replicas: 1
          podManagementPolicy: OrderedReady
          updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0, maxUnavailable: 1}}
          template: TEMPLATE
        """,
    ),
    "StatefulSet without rolling updates": (
        "apps/v1",
        "StatefulSet",
        "spec: {selector: {matchLabels: {app: web}}, template: TEMPLATE, updateStrategy: {type: OnDelete}}",
        "spec: {replicas: 1, podManagementPolicy: OrderedReady, template: TEMPLATE}",
    ),
    "DaemonSet": (
        "apps/v1",
        "DaemonSet",
        "spec: {selector: {matchLabels: {app: web}}, template: TEMPLATE}",
        """
        metadata: {annotations: {deprecated.daemonset.template.generation: "1"}}
        spec:
          revisionHistoryLimit: 10
          updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
          template: TEMPLATE
        """,
    ),
    "DaemonSet without rolling updates": (
        "apps/v1",
        "DaemonSet",
        "spec: {selector: {matchLabels: {app: web}}, template: TEMPLATE, updateStrategy: {type: OnDelete}}",
        "spec: {revisionHistoryLimit: 10, template: TEMPLATE}",
    ),
    "Job": (
        "batch/v1",
        "Job",
        "spec: {template: TEMPLATE}",
        """
        metadata: {labels: {app: web}}
        spec:
          parallelism: 1
          completions: 1
          completionMode: NonIndexed
          backoffLimit: 6
          manualSelector: false
          podReplacementPolicy: TerminatingOrFailed
          suspend: false
          selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}}
          template: TEMPLATE
        """,
    ),
    "Job with several pods": (
        "batch/v1",
        "Job",
        "spec: {parallelism: 3, template: TEMPLATE}",
        "{metadata: {labels: {app: web}}, spec: {backoffLimit: 6, suspend: false, template: TEMPLATE}}",
    ),
    "CronJob": (
        "batch/v1",
        "CronJob",
        "spec: {schedule: '* * * * *', jobTemplate: {spec: {template: TEMPLATE}}}",
        """
        spec:
          concurrencyPolicy: Allow
          suspend: false
          successfulJobsHistoryLimit: 3
          failedJobsHistoryLimit: 1
          jobTemplate: {metadata: {creationTimestamp: null}, spec: {template: TEMPLATE}}
        """,
    ),
    "HorizontalPodAutoscaler": (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}",
        "spec: {minReplicas: 1}",
    ),
    "PodDisruptionBudget": (
        "policy/v1",
        "PodDisruptionBudget",
        "spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}",
        "status: {disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2}",
    ),
    "Service": (
        "v1",
        "Service",
        "spec: {selector: {app: web}, ports: [{port: 80}]}",
        """
        spec:
          clusterIP: 10.0.0.1
          clusterIPs: [10.0.0.1]
          internalTrafficPolicy: Cluster
          ipFamilies: [IPv4]
          ipFamilyPolicy: SingleStack
          sessionAffinity: None
          type: ClusterIP
          ports: [{protocol: TCP, targetPort: 80}]
        """,
    ),
    "Namespace": (
        "v1",
        "Namespace",
        "metadata: {name: web}",
        """
        metadata: {labels: {kubernetes.io/metadata.name: web}}
        spec: {finalizers: [kubernetes]}
        status: {phase: Active}
        """,
    ),
    "PriorityClass": (
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "value: 1000",
        "preemptionPolicy: PreemptLowerPriority",
    ),
    "StorageClass": (
        "storage.k8s.io/v1",
        "StorageClass",
        "provisioner: ebs.csi.aws.com",
        "{reclaimPolicy: Delete, volumeBindingMode: Immediate}",
    ),
    "CSIDriver": (
        "storage.k8s.io/v1",
        "CSIDriver",
        "spec: {}",
        """
        spec:
          attachRequired: true
          fsGroupPolicy: ReadWriteOnceWithFSType
          podInfoOnMount: false
          requiresRepublish: false
          seLinuxMount: false
          storageCapacity: false
          volumeLifecycleModes: [Persistent]
        """,
    ),
    "PersistentVolume": (
        "v1",
        "PersistentVolume",
        """
        spec:
          capacity: {storage: 1024Mi}
          accessModes: [ReadWriteOnce]
          csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}
        """,
        """
        spec:
          capacity: {storage: 1Gi}
          claimRef: {kind: PersistentVolumeClaim, namespace: default, name: web}
          persistentVolumeReclaimPolicy: Retain
          volumeMode: Filesystem
        status: {phase: Bound}
        """,
    ),
    "PersistentVolumeClaim": (
        "v1",
        "PersistentVolumeClaim",
        "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}",
        """
        metadata: {annotations: {pv.kubernetes.io/bind-completed: "yes"}}
        spec: {storageClassName: fast, volumeMode: Filesystem, volumeName: v, resources: {requests: {storage: 1Gi}}}
        status: {phase: Bound}
        """,
    ),
    "Pod": (
        "v1",
        "Pod",
        TEMPLATE,
        TEMPLATE_FILLED_IN
        + """
  nodeName: n1
  enableServiceLinks: true
  preemptionPolicy: PreemptLowerPriority
  priority: 1000
  tolerations:
  - {key: spot, value: "yes"}
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
status: {phase: Running}
""",
    ),
}


def filled_in(given: Any, more: Any) -> Any:
    """The fields given and more; items of lists by their places."""
    if isinstance(given, dict) and isinstance(more, dict):
        return {**given, **{key: filled_in(given.get(key), value) for key, value in more.items()}}
    if isinstance(given, list) and isinstance(more, list):
        return [filled_in(*pair) for pair in zip_longest(given, more)]
    return deepcopy(more)


@pytest.mark.parametrize("created", [True, False], ids=["of an API server", "without times"])
@pytest.mark.parametrize(("api", "kind", "manifest", "more"), CASES.values(), ids=CASES)
def test_a_manifest_over_what_became_of_it_changes_nothing(
    tmp_path: Path, api: str, kind: str, manifest: str, more: str, created: bool
) -> None:
    given = object_of(api, kind, templated(manifest, TEMPLATE))
    stored = filled_in(given, yaml.safe_load(templated(more, TEMPLATE_FILLED_IN)))
    if kind == "Pod":
        given["metadata"]["name"] = stored["metadata"]["name"] = "web"
    if kind == "PriorityClass":
        stored["value"] = 1000
    if created:
        stored["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1"}
    # YAML, as people write it: what stands in JSON above is text in both.
    release = tmp_path / "release.yaml"
    release.write_text(yaml.safe_dump(given))

    objects = load(written(tmp_path / "cluster.json", node(), stored), release)

    assert [(change.kind, change.paths) for change in objects.applied] == []
