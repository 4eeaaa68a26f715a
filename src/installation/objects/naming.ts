// Names and labels of installed objects.
import { AUDITOR_ACCOUNT, type KubernetesObject } from '../../resources/index.ts';
import type { InstallValues } from './install-values.ts';

/** The name of the controller's Deployment, Service, service account, roles and disruption budget. */
export const CONTROLLER = 'portcullis-controller';
/** The port of the controller's webhook for our own kinds, in its pods. */
export const CONTROLLER_WEBHOOK_PORT = 9443;
/** The port of the controller's probes and metrics, in its pods. */
export const CONTROLLER_OPERATIONS_PORT = 8082;

/** The port of the controller for copies of modules, in its pods: as that of policy servers. */
export const CONTROLLER_CONTROL_PORT = 8444;

/** The name of the auditor's Deployment, service account and roles. */
export const AUDITOR = AUDITOR_ACCOUNT;
/** The port of the auditor's probes and metrics, in its pods. */
export const AUDITOR_OPERATIONS_PORT = 8083;

/** The input of installed objects. */
export interface InstallContext {
  /** The namespace of Portcullis. */
  readonly namespace: string;
  readonly values: InstallValues;
}

/** Labels of all installed objects. */
export const PRODUCT_LABELS = {
  'app.kubernetes.io/name': 'portcullis',
  'app.kubernetes.io/part-of': 'portcullis',
} as const;

/** Whether an object has the label of an installation. */
export function isInstalledObject({ metadata }: Pick<KubernetesObject, 'metadata'>): boolean {
  return metadata.labels?.['app.kubernetes.io/part-of'] === PRODUCT_LABELS['app.kubernetes.io/part-of'];
}

/** Labels of one component. */
export function componentLabels(component: string): Readonly<Record<string, string>> {
  return { ...PRODUCT_LABELS, 'app.kubernetes.io/component': component };
}

/** Selects the pods of a component. */
export function podSelector(component: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': 'portcullis', 'app.kubernetes.io/component': component };
}
