import type { AccessRule } from '../../resources/index.ts';

/**
 * What the controller needs to be allowed in the product's namespace to keep certificates, to read its own, and to remove those
 * of a PolicyServer that is gone.
 */
export const CERTIFICATE_NAMESPACE_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'] },
];

/** The same, where others keep the Secrets: they are only read. */
export const EXTERNAL_CERTIFICATE_NAMESPACE_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] },
];
