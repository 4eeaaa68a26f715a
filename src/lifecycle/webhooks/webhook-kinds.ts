import { knownKind } from '../../resources/index.ts';
import type { WebhookConfiguration } from './webhook-object.ts';

const ADMISSION = 'admissionregistration.k8s.io/v1';

export const VALIDATING_WEBHOOKS = knownKind<WebhookConfiguration>(ADMISSION, 'ValidatingWebhookConfiguration');
export const MUTATING_WEBHOOKS = knownKind<WebhookConfiguration>(ADMISSION, 'MutatingWebhookConfiguration');
