// Outcomes and reasons of failed loads.
import { EvaluationError } from '../errors.ts';
import { EngineError } from '../../engine/index.ts';
import { ModuleError } from '../../modules/index.ts';
import { WasmError } from '../../wasm/index.ts';
import { errorText } from '../../values/index.ts';
import type { Quarantined } from './quarantine.ts';
import type { LoadOutcome } from './load-request.ts';
import type { PolicyReason } from './policy-reason.ts';

/** The outcome of a load that threw this error. */
export function loadFailure(error: unknown, isForTenant = false): LoadOutcome & { ok: false } {
  const message = isForTenant ? tenantText(error) : `${errorText(error)}${adviceOn(error)}`;
  if (error instanceof QuarantineError) {
    return { ok: false, reason: 'Quarantined', message, transient: true, retryAfterMs: error.retryAfterMs };
  }
  const isRetryable =
    error instanceof ModuleError ? error.isRetryable : error instanceof WasmError && error.code === 'trial-failed';
  return { ok: false, reason: reasonOf(error), message, transient: isRetryable };
}

function adviceOn(error: unknown): string {
  return error instanceof ModuleError && error.code === 'module-too-large'
    ? '; spec.maxModuleSize of the PolicyServer allows larger ones, and so does --max-module-size of serve'
    : '';
}

/** The process ended while it loaded this before. */
export class QuarantineError extends EvaluationError {
  readonly retryAfterMs: number;

  constructor({ ends, until }: Quarantined) {
    super(
      'quarantined',
      `the policy server ended ${ends === 1 ? 'once' : `${ends} times`} while it loaded this policy's module or settings. It ` +
        `tries again after ${new Date(until).toISOString()}; all other policies serve. A changed module or changed settings ` +
        'are loaded at once',
    );
    this.retryAfterMs = until - Date.now();
  }
}

/** The message of a failed load for the author of a namespaced policy: nothing that the source of the module sent. */
function tenantText(error: unknown): string {
  if (error instanceof ModuleError) {
    return error.tenantMessage;
  }
  if (error instanceof WasmError && error.code === 'memory-exceeded') {
    return error.message;
  }
  if (error instanceof QuarantineError) {
    return error.message;
  }
  const code = error instanceof WasmError ? ` (${error.code})` : '';
  return `the module cannot be used${code}: "portcullis inspect FILE" and "portcullis run FILE" say what is wrong with it`;
}

/** The reason in the status of a policy whose load threw this error. */
function reasonOf(error: unknown): PolicyReason {
  if (error instanceof ModuleError) {
    switch (error.code) {
      case 'source-unauthorized':
      case 'credentials-invalid':
      case 'token-invalid':
        return 'Unauthorized';
      case 'source-access-denied':
        return 'AccessDenied';
      case 'source-not-found':
        return 'ModuleNotFound';
      case 'source-rate-limited':
        return 'RateLimited';
      case 'source-failed':
        return 'SourceFailed';
      case 'manifest-invalid':
        return 'InvalidManifest';
      case 'media-type-unsupported':
        return 'UnsupportedMediaType';
      case 'size-mismatch':
        return 'SizeMismatch';
      case 'digest-mismatch':
        return 'DigestMismatch';
      case 'signature-missing':
        return 'SignatureMissing';
      case 'signature-invalid':
        return 'SignatureInvalid';
      case 'trust-root-unavailable':
        return 'TrustRootUnavailable';
      case 'not-verifiable':
        return 'NotVerifiable';
      case 'reference-invalid':
      case 'source-forbidden':
        return 'InvalidDefinition';
      case 'version-unsupported':
        return 'UnsupportedVersion';
      default:
        return error.isFetchError ? 'FetchFailed' : 'InvalidModule';
    }
  }
  if (error instanceof WasmError) {
    return error.code === 'memory-exceeded' ? 'MemoryExceeded' : 'InvalidModule';
  }
  return error instanceof EngineError && error.code === 'protocol-unsupported'
    ? 'InvalidModule'
    : 'SettingsCheckFailed';
}
