import type { FieldError, KubernetesObject } from '../../../resources/index.ts';
import {
  checkClusterRole,
  checkClusterRoleBinding,
  checkHorizontalPodAutoscaler,
  checkRole,
  checkRoleBinding,
  checkValidatingAdmissionPolicy,
  checkValidatingAdmissionPolicyBinding,
  checkWebhooks,
} from './access-validation.ts';
import {
  checkConfigMap,
  checkEvent,
  checkLease,
  checkLimitRange,
  checkPersistentVolume,
  checkPersistentVolumeClaim,
  checkPriorityClass,
  checkResourceQuota,
  checkSecret,
  checkStorageClass,
} from './configuration-validation.ts';
import {
  checkEndpoints,
  checkEndpointSlice,
  checkIngress,
  checkIngressClass,
  checkService,
} from './networking-validation.ts';
import { CheckedValue, checkNetworkPolicy } from '../../../resources/kind-validation/index.ts';
import { checkPodSpec, checkPodUpdate } from './pod-validation.ts';
import {
  checkCronJob,
  checkDaemonSet,
  checkDeployment,
  checkJob,
  checkPodDisruptionBudget,
  checkReplicaSet,
  checkReplicationController,
  checkStatefulSet,
} from './workload-validation.ts';

type Check = (object: CheckedValue, old: KubernetesObject | undefined) => void;

/** Validation by `apiVersion/kind`. Kinds without rules are absent. */
const CHECKS: Readonly<Record<string, Check>> = {
  'admissionregistration.k8s.io/v1/MutatingWebhookConfiguration': checkWebhooks,
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy': checkValidatingAdmissionPolicy,
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding': checkValidatingAdmissionPolicyBinding,
  'admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration': checkWebhooks,
  'apps/v1/DaemonSet': checkDaemonSet,
  'apps/v1/Deployment': checkDeployment,
  'apps/v1/ReplicaSet': checkReplicaSet,
  'apps/v1/StatefulSet': checkStatefulSet,
  'autoscaling/v2/HorizontalPodAutoscaler': checkHorizontalPodAutoscaler,
  'batch/v1/CronJob': checkCronJob,
  'batch/v1/Job': checkJob,
  'coordination.k8s.io/v1/Lease': checkLease,
  'discovery.k8s.io/v1/EndpointSlice': checkEndpointSlice,
  'networking.k8s.io/v1/Ingress': checkIngress,
  'networking.k8s.io/v1/IngressClass': checkIngressClass,
  'networking.k8s.io/v1/NetworkPolicy': checkNetworkPolicy,
  'policy/v1/PodDisruptionBudget': checkPodDisruptionBudget,
  'rbac.authorization.k8s.io/v1/ClusterRole': checkClusterRole,
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': checkClusterRoleBinding,
  'rbac.authorization.k8s.io/v1/Role': checkRole,
  'rbac.authorization.k8s.io/v1/RoleBinding': checkRoleBinding,
  'scheduling.k8s.io/v1/PriorityClass': checkPriorityClass,
  'storage.k8s.io/v1/StorageClass': checkStorageClass,
  'v1/ConfigMap': checkConfigMap,
  'v1/Endpoints': checkEndpoints,
  'v1/Event': checkEvent,
  'v1/LimitRange': checkLimitRange,
  'v1/PersistentVolume': checkPersistentVolume,
  'v1/PersistentVolumeClaim': checkPersistentVolumeClaim,
  'v1/Pod': (pod, old) => {
    checkPodSpec(pod.at('spec'));
    if (old !== undefined) {
      checkPodUpdate(pod, old);
    }
  },
  'v1/ReplicationController': checkReplicationController,
  'v1/ResourceQuota': checkResourceQuota,
  'v1/Secret': checkSecret,
  'v1/Service': checkService,
};

/** Validates an object of a builtin kind, except its metadata, with the messages of API servers. */
export function validateBuiltin(object: KubernetesObject, old: KubernetesObject | undefined): readonly FieldError[] {
  const name = `${object.apiVersion}/${object.kind}`;
  const place = new CheckedValue(object);
  if (Object.hasOwn(CHECKS, name)) {
    CHECKS[name]?.(place, old);
  }
  return place.errors;
}
