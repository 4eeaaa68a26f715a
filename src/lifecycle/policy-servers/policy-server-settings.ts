/** Settings for all PolicyServers. */
export interface PolicyServerSettings {
  /** Namespace of Portcullis, which contains the objects. */
  readonly namespace: string;
  /** The image of Portcullis, for PolicyServers that name Kubewarden's. */
  readonly image: string;
  /** Pull secrets for all PolicyServers, besides those in their specs. Default: none. */
  readonly imagePullSecrets?: readonly string[];
  /** Default: true. */
  readonly networkPolicies?: boolean;
  /** Listen address of the processes: `0.0.0.0` (default), or `::` in IPv6 clusters. */
  readonly listenAddress?: string;
}
