// Names and labels of what is installed.
import type { InstallValues } from '../install-values.ts';

/** Of the Deployment, Service, service account, roles and disruption budget of the controller. */
export const CONTROLLER = 'portcullis-controller';
/** The PolicyServer of policies that name none. */
export const DEFAULT_POLICY_SERVER = 'default';
/** The port of the controller's webhook for our own kinds, in its pods. */
export const CONTROLLER_WEBHOOK_PORT = 9443;
/** The port for probes and metrics of the controller. */
export const CONTROLLER_OPERATIONS_PORT = 8082;

/** What installed objects are made from. */
export interface InstallContext {
  /** Of the product. */
  readonly namespace: string;
  readonly values: InstallValues;
}

/** On everything that is installed. */
export const PRODUCT_LABELS = {
  'app.kubernetes.io/name': 'portcullis',
  'app.kubernetes.io/part-of': 'portcullis',
} as const;

/** Of one part of the product. */
export function componentLabels(component: string): Readonly<Record<string, string>> {
  return { ...PRODUCT_LABELS, 'app.kubernetes.io/component': component };
}

/** Which pods are those of a part of the product. */
export function podSelector(component: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': 'portcullis', 'app.kubernetes.io/component': component };
}
