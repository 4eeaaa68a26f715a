/** The cluster that context-aware policies read, as plain data: it is posted to the capability thread. */
export type ClusterSource =
  /** The cluster of a kubeconfig. */
  | {
      readonly kind: 'kubeconfig';
      /** Default: those of `KUBECONFIG`, or `~/.kube/config`. */
      readonly file?: string;
      /** Default: the current context. */
      readonly context?: string;
      /** The process's environment: exec plugins get it. */
      readonly env: Readonly<Record<string, string | undefined>>;
    }
  /** The cluster that this process is a pod of. */
  | { readonly kind: 'in-cluster'; readonly env: Readonly<Record<string, string | undefined>> };
