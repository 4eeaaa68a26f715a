/** Why the code of a policy could not be had, or is not fit to be used. */
export type ModuleErrorCode =
  /** A module reference does not have one of the forms that `parseReference` knows. */
  | 'reference-invalid'
  /** A reference names an OCI registry (`registry://`), which this version cannot fetch from. */
  | 'registry-unsupported'
  /** `sources.yml` is malformed, or has an unknown key or a wrong value. The message gives line and column. */
  | 'sources-invalid'
  /** The file of a `file://` reference, or of a certificate authority of `sources.yml`, does not exist or cannot be used. */
  | 'file-unreadable'
  /** The server could not be reached: name not found, connection refused or lost. */
  | 'source-unreachable'
  /** The server did not connect, answer or finish in time. */
  | 'source-timeout'
  /** The server's certificate is not trusted, or TLS failed otherwise. */
  | 'source-untrusted'
  /** The server answered with another status than 200. */
  | 'source-status'
  /** The server redirects too often, or to where a module must not come from. */
  | 'source-redirect'
  /** A policy of a namespace names a file of the server, or a loopback or link-local address. */
  | 'source-forbidden'
  /** The transfer ended before all announced bytes had come. */
  | 'source-truncated'
  /** The module is larger than allowed. */
  | 'module-too-large'
  /** What came is not a WebAssembly core module. The message says what it looks like. */
  | 'not-wasm'
  /** The module's digest is not the one that the reference pins. */
  | 'digest-mismatch'
  /** The module was to come from the cache (`offline`), which does not have it. */
  | 'not-cached'
  /** The cache folder cannot be read or written. */
  | 'cache-failed'
  /** The module's metadata section is malformed or has a wrong value. The message gives the path of the field. */
  | 'metadata-invalid'
  /** The module does not state protocol version v1, which this kind of module must. */
  | 'protocol-unsupported'
  /** The module asks for a newer version of the policy interface than this server implements. */
  | 'version-unsupported'
  /** The kind of the module (waPC, WASI, OPA, Gatekeeper) cannot be told, or contradicts what is stated. */
  | 'execution-mode-unclear';

/** Codes of errors of getting a module, as against errors of the module. */
const FETCHING: ReadonlySet<ModuleErrorCode> = new Set<ModuleErrorCode>([
  'file-unreadable',
  'source-unreachable',
  'source-timeout',
  'source-untrusted',
  'source-status',
  'source-redirect',
  'source-truncated',
  'not-cached',
  'cache-failed',
]);

/** Codes of errors that may go away without any change of the configuration. */
const RETRYABLE: ReadonlySet<ModuleErrorCode> = new Set<ModuleErrorCode>([
  ...FETCHING,
  'module-too-large',
  'not-wasm',
  'digest-mismatch',
]);

/** The only error class that this folder throws on purpose. Messages never hold credentials or query strings of URLs. */
export class ModuleError extends Error {
  override readonly name: string = 'ModuleError';
  readonly code: ModuleErrorCode;

  constructor(code: ModuleErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Whether the module could not be had; nothing is known about the module itself then. */
  get isOfFetching(): boolean {
    return FETCHING.has(this.code);
  }

  /** Whether trying again later makes sense: what the source serves may change, what the user wrote does not. */
  get isRetryable(): boolean {
    return RETRYABLE.has(this.code);
  }
}

/** The code of a system error (`ENOENT`, ...), or undefined. */
export function systemCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
