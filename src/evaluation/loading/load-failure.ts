// Outcomes and reasons of failed loads.
import { EngineError } from '../../engine/index.ts';
import { ModuleError } from '../../modules/index.ts';
import { WasmError } from '../../wasm/index.ts';
import { errorText } from '../../values/index.ts';
import type { LoadOutcome } from './load-request.ts';
import type { PolicyReason } from './policy-reason.ts';

/** The outcome of a load that threw this error. */
export function loadFailure(error: unknown): LoadOutcome & { ok: false } {
  const message = errorText(error);
  return { ok: false, reason: reasonOf(error), message, transient: error instanceof ModuleError && error.isRetryable };
}

/** The reason in the status of a policy whose load threw this error. */
export function reasonOf(error: unknown): PolicyReason {
  if (error instanceof ModuleError) {
    if (error.isFetchError) {
      return 'FetchFailed';
    }
    switch (error.code) {
      case 'digest-mismatch':
        return 'DigestMismatch';
      case 'reference-invalid':
      case 'registry-unsupported':
      case 'source-forbidden':
        return 'InvalidDefinition';
      case 'version-unsupported':
        return 'UnsupportedVersion';
      default:
        return 'InvalidModule';
    }
  }
  if (error instanceof WasmError) {
    return 'InvalidModule';
  }
  return error instanceof EngineError && error.code === 'protocol-unsupported'
    ? 'InvalidModule'
    : 'SettingsCheckFailed';
}
