export type { LoadCatalogue } from './current-catalogue.ts';
export { NetworkPolicyControllers } from './network-policy-controllers.ts';
export {
  NETWORK_POLICY_ANNOTATION_RULES,
  NETWORK_POLICY_READER_RULES,
  NETWORK_POLICY_STATUS_RULES,
  NETWORK_POLICY_SUBRESOURCE_RULES,
} from './network-policy-rules.ts';
export { ANNOTATION_MODES } from './policy-projection.ts';
export type { AnnotationMode, ProjectionOptions } from './policy-projection.ts';
export { StatusRemoval } from './status-removal.ts';
