/** What is the same for all PolicyServers. */
export interface PolicyServerSettings {
  /** Of the product: where the objects are. */
  readonly namespace: string;
  /** The product's own, for PolicyServers that name Kubewarden's. */
  readonly image: string;
  /** Secrets that images of all PolicyServers are pulled with, besides those that these name. Default: none. */
  readonly imagePullSecrets?: readonly string[];
  /** Default: true. */
  readonly networkPolicies?: boolean;
  /** Where processes listen: `0.0.0.0` (default); `::` in clusters of IPv6. */
  readonly listenAddress?: string;
}
