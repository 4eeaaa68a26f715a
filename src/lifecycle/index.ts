export { SELF_REVIEW } from './access-rules/controller-rules.ts';
export { ExceptionController } from './exceptions/exception-controller.ts';
export { LifecycleControllers } from './lifecycle-controllers.ts';
export { PolicyTypeChecks } from './type-checks/policy-type-checks.ts';
export type { WebhookConfiguration, WebhookTarget } from './webhooks/webhook-object.ts';
export {
  armedConfiguration,
  disarmedConfiguration,
  isDisarmed,
  reducedConfiguration,
} from './webhooks/disarmed-webhooks.ts';
export { matchOf } from './gather-rollout-view.ts';
export { MAX_DISARM_REASON } from '../rollout/index.ts';
export { OWN_KINDS_CONFIGURATION } from './admission/own-kinds-configuration.ts';
export { wantsOwnWebhook } from './webhooks/own-webhook.ts';
export { WritePace } from './webhooks/write-pace.ts';
export { PolicyServerController } from './replicas/policy-server-controller.ts';
export type { KnownReplica, ReplicaChange, ReplicaDirectory } from './replicas/replica-directory.ts';
export { ReplicaHub } from './replicas/replica-hub.ts';
export { REASONS } from '../rollout/index.ts';
export { POLICY_ACTIVE } from './rollout/admission-policy-status.ts';
export { uninstalledPolicyStatus, uninstalledServerStatus } from './rollout/uninstalled-status.ts';
export { DEFAULT_ROLLOUT_SETTINGS } from '../rollout/index.ts';
export type { DegradedBehaviour, RolloutSettings, RolloutStrategy, UnservedBehaviour } from '../rollout/index.ts';
export { addressList } from './admission/review-callers.ts';
export type { GuardedWrite } from './admission/guarded-kinds.ts';
export { OwnKindsWebhook } from './admission/own-kinds-webhook.ts';
export type { OwnKindsWebhookOptions } from './admission/own-kinds-webhook.ts';
export { MAX_HISTORY_LIMIT, MAX_PROGRESS_DEADLINE_MS, MIN_PROGRESS_DEADLINE_MS } from '../rollout/index.ts';
export { type CopySettings, CopyService, DEFAULT_COPIES_BYTES } from './copies/copy-service.ts';
export { DURABLE_MODULES } from './copies/policy-copies.ts';
export { CertificateController } from './certificates/certificate-controller.ts';
export {
  AUTHORITY_SECRET,
  CONTROLLER_CONTROL_SECRET,
  CONTROLLER_SERVICE,
  CONTROLLER_WEBHOOK_SECRET,
  policyServerSecrets,
  wantedCertificates,
} from './certificates/certificate-names.ts';
export { DEFAULT_CERTIFICATE_SETTINGS, settingsProblem } from './certificates/certificate-settings.ts';
export type { CertificateSettings } from './certificates/certificate-settings.ts';
export { servedCertificateFault } from './certificates/served-certificate.ts';
export { ensureCertificates } from './certificates/ensure-certificates.ts';
export { METRICS_PEERS, PRODUCT_PODS } from './policy-servers/policy-server-network.ts';
export { tenantModuleHosts, tenantModules } from './policy-servers/module-sources.ts';
export { KEPT_REASONS } from './rollout/modules-kept.ts';
export { foreignReason, kubewardenFinalizer, PolicyServerOwnership } from './policy-servers/ownership.ts';
export { policyServerObjects } from './policy-servers/policy-server-objects.ts';
export { PolicyServerObjectsController } from './policy-servers/policy-server-objects-controller.ts';
export { SERVICE_PORT as POLICY_SERVER_SERVICE_PORT } from './policy-servers/policy-server-ports.ts';
export { type ServiceReachability, ReachableServices } from './policy-servers/reachable-services.ts';
export { SecretFiles } from './certificates/secret-files.ts';
