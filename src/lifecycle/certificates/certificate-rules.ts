import type { AccessRule } from '../../resources/index.ts';

/**
 * Access rules of the controller in the product's namespace, to issue certificates, to read its own, and to delete those of
 * deleted PolicyServers.
 */
export const CERTIFICATE_NAMESPACE_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'] },
];

/** The same for certificates of another issuer, which are only read. */
export const EXTERNAL_CERTIFICATE_NAMESPACE_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] },
];
