import type { AccessRule } from '../../server/index.ts';

/** What the controller needs to be allowed in the product's namespace to keep certificates, and to read its own. */
export const CERTIFICATE_NAMESPACE_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch', 'create', 'update'] },
];

/** The same, where others keep the Secrets. */
export const EXTERNAL_CERTIFICATE_NAMESPACE_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] },
];
