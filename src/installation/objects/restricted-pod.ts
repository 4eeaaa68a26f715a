// What a pod needs to meet the restricted Pod Security Standard.

/** The id `nonroot` of distroless images, which no user of a node has. */
const USER_ID = 65_532;

export const RESTRICTED_POD = {
  runAsNonRoot: true,
  runAsUser: USER_ID,
  runAsGroup: USER_ID,
  fsGroup: USER_ID,
  seccompProfile: { type: 'RuntimeDefault' },
} as const;

/** Only volumes are writable. */
export const RESTRICTED_CONTAINER = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  privileged: false,
  readOnlyRootFilesystem: true,
} as const;
