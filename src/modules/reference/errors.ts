import { CodedError } from '../../values/index.ts';

/** Why a module could not be fetched, or cannot be used. */
export type ModuleErrorCode =
  /** The module reference has none of the forms that `parseReference` accepts. */
  | 'reference-invalid'
  /** `sources.yml` is malformed, or has an unknown key or an invalid value. The message gives line and column. */
  | 'sources-invalid'
  /** `verification.yml` is malformed, or has an unknown key or an invalid value. The message gives line and column. */
  | 'verification-invalid'
  /** The trust root is malformed or has an invalid value. The message gives line and column. */
  | 'trust-root-invalid'
  /** The file of a `file://` reference, or of a certificate authority of `sources.yml`, does not exist or cannot be read. */
  | 'file-unreadable'
  /** The server could not be reached: name not found, connection refused or lost. */
  | 'source-unreachable'
  /** The server did not connect, answer or finish in time. */
  | 'source-timeout'
  /** The server's certificate is not trusted, or TLS failed otherwise. */
  | 'source-untrusted'
  /** The server answered 401: it needs credentials, or refuses those that it got. */
  | 'source-unauthorized'
  /** The server answered 403: the credentials may not read the module. */
  | 'source-access-denied'
  /** The server answered 404 or 410: it has no such module. */
  | 'source-not-found'
  /** The server answered 429: too many requests. */
  | 'source-rate-limited'
  /** The server answered with a status of 500 or more. */
  | 'source-failed'
  /** The server answered with another status than 200. */
  | 'source-status'
  /** The server redirects too often, or to a URL that is not allowed. */
  | 'source-redirect'
  /** A namespaced policy names a file of the policy server, or a loopback or link-local address. */
  | 'source-forbidden'
  /** The Docker config file, or a credential helper that it names, cannot be used. */
  | 'credentials-invalid'
  /** The token service of a registry did not answer with a token. */
  | 'token-invalid'
  /** The manifest of an artifact in a registry is malformed or too large. */
  | 'manifest-invalid'
  /** An artifact in a registry is not, or does not contain, a WebAssembly module. */
  | 'media-type-unsupported'
  /** Content of a registry has another size than its manifest says. */
  | 'size-mismatch'
  /** The transfer ended before all announced bytes arrived. */
  | 'source-truncated'
  /** The module is larger than allowed. */
  | 'module-too-large'
  /** The bytes are not a WebAssembly core module. The message says what they look like. */
  | 'not-wasm'
  /** The module's digest is not the one that the reference pins. */
  | 'digest-mismatch'
  /** The module is not in the cache, and fetching is off (`offline`). */
  | 'not-cached'
  /** Modules are verified, and the artifact has no signature. */
  | 'signature-missing'
  /** Modules are verified, and the signatures of the artifact do not satisfy `verification.yml`. */
  | 'signature-invalid'
  /** `verification.yml` requires a keyless signature, and there is no trust root to verify it with. */
  | 'trust-root-unavailable'
  /** Modules are verified, and this one is not from a registry. */
  | 'not-verifiable'
  /** The cache folder cannot be read or written. */
  | 'cache-failed'
  /** The module's metadata is malformed or has an invalid value. The message gives the path of the field. */
  | 'metadata-invalid'
  /** The metadata of a waPC module does not state protocol version v1. */
  | 'protocol-unsupported'
  /** The module needs a newer version of the policy interface than this server implements. */
  | 'version-unsupported'
  /** The execution mode (waPC, WASI, OPA, Gatekeeper) cannot be determined, or contradicts the metadata. */
  | 'execution-mode-unclear'
  /** The execution mode is one of Kubewarden's that is not run here. */
  | 'execution-mode-unsupported';

/** Codes of failed fetches, which say nothing about the module itself. */
const FETCHING: ReadonlySet<ModuleErrorCode> = new Set<ModuleErrorCode>([
  'file-unreadable',
  'source-unreachable',
  'source-timeout',
  'source-untrusted',
  'source-unauthorized',
  'source-access-denied',
  'source-not-found',
  'source-rate-limited',
  'source-failed',
  'source-status',
  'source-redirect',
  'credentials-invalid',
  'token-invalid',
  'source-truncated',
  'not-cached',
  'trust-root-unavailable',
  'cache-failed',
]);

/** Codes of errors that may go away without a change of the configuration. */
const RETRYABLE: ReadonlySet<ModuleErrorCode> = new Set<ModuleErrorCode>([
  ...FETCHING,
  'module-too-large',
  'manifest-invalid',
  'media-type-unsupported',
  'size-mismatch',
  'not-wasm',
  'digest-mismatch',
  'signature-missing',
  'signature-invalid',
]);

const INSPECT = '"portcullis inspect FILE" says what is wrong with it';

/**
 * Messages for authors of namespaced policies in place of those that quote what a source sent. Undefined: the message quotes
 * nothing of it.
 */
const TENANT_MESSAGES: Readonly<Record<ModuleErrorCode, string | undefined>> = {
  'reference-invalid': undefined,
  'sources-invalid': undefined,
  'verification-invalid': undefined,
  'trust-root-invalid': undefined,
  'file-unreadable': undefined,
  'source-unreachable': 'the source cannot be reached: check the URL',
  'source-timeout': undefined,
  'source-untrusted': undefined,
  'source-unauthorized': 'the source needs credentials, or those that it got are wrong',
  'source-access-denied': 'the credentials may not read the module',
  'source-not-found': 'the source has no such module: check the URL',
  'source-rate-limited': 'the source limits the rate of requests: wait, or mirror the module',
  'source-failed': 'the source failed: try again later',
  'source-status': 'the source answered a status other than 200: check the URL',
  'source-redirect':
    'the source redirects too often, or to a URL that is not allowed: name the address of the module itself',
  'source-forbidden': undefined,
  'credentials-invalid': 'the credentials of the policy server for this source cannot be used',
  'token-invalid': 'the token service of the registry did not answer with a token',
  'manifest-invalid': 'the manifest of the artifact is not valid',
  'media-type-unsupported': 'the artifact is not, or does not contain, exactly one WebAssembly module',
  'size-mismatch': 'the module has another size than its manifest says',
  'source-truncated': 'the answer of the source ended early',
  'module-too-large': 'the module is too large: policies of namespaces have at most 64 MiB',
  'not-wasm': `the module is not valid: ${INSPECT}`,
  'digest-mismatch': 'the source has another module than the pinned one: check the digest in the reference',
  'not-cached': undefined,
  'signature-missing': 'the artifact has no signature, and this policy server runs signed modules only',
  'signature-invalid': 'the signatures of the artifact are not those that this policy server requires',
  'trust-root-unavailable':
    'the policy server has no trust root to verify signatures with: only its administrator can change that',
  'not-verifiable': undefined,
  'cache-failed': undefined,
  'metadata-invalid': `the metadata of the module is not valid: ${INSPECT}`,
  'protocol-unsupported': `the metadata of the module does not have protocolVersion "v1": ${INSPECT}`,
  'version-unsupported': `the module needs a newer version of the policy interface: ${INSPECT}`,
  'execution-mode-unclear': `the execution mode of the module cannot be determined: ${INSPECT}`,
  'execution-mode-unsupported': undefined,
};

interface ModuleErrorOptions extends ErrorOptions {
  /** Default: the message, or a general one for errors that quote what a source sent. */
  readonly tenantMessage?: string;
}

/** The error of this folder. Messages hold no credentials and no query strings of URLs. */
export class ModuleError extends CodedError<ModuleErrorCode> {
  override readonly name: string = 'ModuleError';
  /**
   * The message for authors of namespaced policies. It contains nothing that the source sent, because the source may be one that
   * only the policy server reaches.
   */
  readonly tenantMessage: string;

  constructor(code: ModuleErrorCode, message: string, { tenantMessage, ...options }: ModuleErrorOptions = {}) {
    super(code, message, options);
    this.tenantMessage = tenantMessage ?? TENANT_MESSAGES[code] ?? message;
  }

  /** Whether the module could not be fetched; then nothing is known about the module itself. */
  get isFetchError(): boolean {
    return FETCHING.has(this.code);
  }

  /** Whether a later attempt may succeed: the source may change, the configuration does not. */
  get isRetryable(): boolean {
    return RETRYABLE.has(this.code);
  }
}

/** The code of a system error (`ENOENT`, ...), or undefined. */
export function systemCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
