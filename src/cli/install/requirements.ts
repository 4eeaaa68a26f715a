/** The oldest supported Kubernetes: match conditions of webhooks are stable since 1.30 (KEP-3716). */
export const MIN_KUBERNETES = [1, 30] as const;
