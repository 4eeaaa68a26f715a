import { convertEvent } from './event-conversion.ts';
import { horizontalPodAutoscalerCells } from './autoscaler.ts';
import {
  configMapCells,
  createdAtCells,
  eventCells,
  leaseCells,
  namespaceCells,
  nodeCells,
  persistentVolumeCells,
  persistentVolumeClaimCells,
  priorityClassCells,
  resourceQuotaCells,
  roleBindingCells,
  secretCells,
  serviceAccountCells,
  storageClassCells,
  validatingAdmissionPolicyBindingCells,
  validatingAdmissionPolicyCells,
  webhookConfigurationCells,
} from './cluster-kinds.ts';
import {
  endpointsCells,
  endpointSliceCells,
  ingressCells,
  ingressClassCells,
  networkPolicyCells,
  serviceCells,
} from './networking.ts';
import { podCells } from './pod.ts';
import type { Cells } from './table-cells.ts';
import {
  cronJobCells,
  daemonSetCells,
  deploymentCells,
  jobCells,
  podDisruptionBudgetCells,
  replicaSetCells,
  replicationControllerCells,
  statefulSetCells,
} from './workloads.ts';

/** Cells by kind. Only Event is a kind of two groups. */
const CELLS: Readonly<Record<string, Cells>> = {
  ClusterRoleBinding: roleBindingCells,
  ConfigMap: configMapCells,
  CronJob: cronJobCells,
  DaemonSet: daemonSetCells,
  Deployment: deploymentCells,
  Endpoints: endpointsCells,
  EndpointSlice: endpointSliceCells,
  Event: (event, now) => eventCells(convertEvent(event, 'v1'), now),
  HorizontalPodAutoscaler: horizontalPodAutoscalerCells,
  Ingress: ingressCells,
  IngressClass: ingressClassCells,
  Job: jobCells,
  Lease: leaseCells,
  MutatingWebhookConfiguration: webhookConfigurationCells,
  Namespace: namespaceCells,
  NetworkPolicy: networkPolicyCells,
  Node: nodeCells,
  PersistentVolume: persistentVolumeCells,
  PersistentVolumeClaim: persistentVolumeClaimCells,
  Pod: podCells,
  PodDisruptionBudget: podDisruptionBudgetCells,
  PriorityClass: priorityClassCells,
  ReplicaSet: replicaSetCells,
  ReplicationController: replicationControllerCells,
  ResourceQuota: resourceQuotaCells,
  RoleBinding: roleBindingCells,
  Secret: secretCells,
  Service: serviceCells,
  ServiceAccount: serviceAccountCells,
  StatefulSet: statefulSetCells,
  StorageClass: storageClassCells,
  ValidatingAdmissionPolicy: validatingAdmissionPolicyCells,
  ValidatingAdmissionPolicyBinding: validatingAdmissionPolicyBindingCells,
  ValidatingWebhookConfiguration: webhookConfigurationCells,
};

/** The table cells of a kind, as `kubectl get` shows them. */
export function cellsOf(kind: string): Cells {
  return CELLS[kind] ?? createdAtCells;
}
