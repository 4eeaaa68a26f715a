/** Why a policy is in its phase, as one word for programs; the message has the details. */
export type PolicyReason =
  /** The declared version is being fetched, compiled and checked. */
  | 'Loading'
  /** The declared version serves. */
  | 'Serving'
  /** The declared version serves from the module cache, because its source could not be reached. */
  | 'ServingFromCache'
  /** The entry in the policies file is not valid. */
  | 'InvalidDefinition'
  /** The module's source could not be reached, or its answer cannot be used; it is tried again. */
  | 'FetchFailed'
  /** The module's source needs credentials, or refuses those that it got; it is tried again. */
  | 'Unauthorized'
  /** The credentials may not read the module; it is tried again. */
  | 'AccessDenied'
  /** The module's source has no such module; it is tried again. */
  | 'ModuleNotFound'
  /** The module's source limits the rate of requests; it is tried again. */
  | 'RateLimited'
  /** The module's source answered with an error of its own; it is tried again. */
  | 'SourceFailed'
  /** The module does not have the digest that the policy names. */
  | 'DigestMismatch'
  /** The manifest of the module's artifact is malformed. */
  | 'InvalidManifest'
  /** The artifact in the registry is not, or does not contain, a WebAssembly module. */
  | 'UnsupportedMediaType'
  /** The module has another size than its manifest says. */
  | 'SizeMismatch'
  /** The policy server runs signed modules only, and the artifact has no signature; it is tried again. */
  | 'SignatureMissing'
  /** The signatures of the artifact are not those that the policy server requires; it is tried again. */
  | 'SignatureInvalid'
  /** The policy server has no trust root to verify the artifact's signatures with; it is tried again. */
  | 'TrustRootUnavailable'
  /** The policy server runs signed modules only, and the module is not from a registry. */
  | 'NotVerifiable'
  /** The module is not WebAssembly, or of a kind or version that is not supported. */
  | 'InvalidModule'
  /** The module needs a newer Kubewarden than this server corresponds to (`minimumKubewardenVersion`). */
  | 'UnsupportedVersion'
  /** The policies of its owner, or all policies, would hold more memory than they may; it is tried again. */
  | 'MemoryExceeded'
  /**
   * The process ended while it loaded this module or these settings; it is tried again later, when all others serve.
   */
  | 'Quarantined'
  /** The policy of a namespace needs host capabilities that its PolicyServer does not grant; it is tried again. */
  | 'CapabilityNotGranted'
  /** The policy refused its settings. */
  | 'InvalidSettings'
  /** The policy failed while its settings were checked. */
  | 'SettingsCheckFailed'
  /** The cluster does not serve a kind that the policy reads for every request; it is tried again. */
  | 'KindNotServed'
  /** The policy server may not read a kind that the policy declares; it is tried again. */
  | 'KindNotReadable'
  /** In a cluster: the policy would refuse requests for parameters that exist. */
  | 'InvalidParameters'
  /** The policies file cannot be used; the policies of before the restart serve. */
  | 'PoliciesFileUnusable'
  /** A worker could not load the policy. */
  | 'ActivationFailed'
  /** The policies of before the restart serve, because the revisions of the cluster are not known yet. */
  | 'ServingFromRecord'
  /** No revision of the policy serves in the cluster, and its newest one failed. */
  | 'RevisionFailed';
