import type { PolicyCode } from '../../modules/index.ts';
import type { CallContext } from '../../wasm/index.ts';
import type { GuestVerdict, SettingsVerdict } from '../verdict/guest-verdict.ts';

/** Input of one evaluation, as JSON text so that it is parsed and serialized only once. */
export interface GuestInput {
  /** In UTF-8. */
  readonly requestJson: Buffer;
  readonly settingsJson: string;
  /** Whether the request came by the route for raw requests. */
  readonly isRaw: boolean;
  /** Objects of the cluster for context-aware Rego policies, in the shape that the mode expects. */
  readonly inventoryJson?: string;
}

/**
 * Code of policies, of any execution mode, loaded into this thread. Stateless, so any number of policies share one;
 * settings are passed with each call.
 */
export interface PolicyGuest {
  readonly mode: Exclude<PolicyCode['mode'], 'manifests'>;
  /**
   * Starts the code now, to prove that it can run; it starts with the first call otherwise. Throws WasmError. Does nothing
   * for builtin code.
   */
  start(): void;
  /** Throws EngineError `guest-error` and `guest-timeout`. */
  validate(input: GuestInput, context: CallContext): GuestVerdict;
  /** Always valid for Rego policies, which cannot check settings. Throws as {@link PolicyGuest.validate}. */
  validateSettings(settingsJson: string, context: CallContext): SettingsVerdict;
  /**
   * Throws EngineError `protocol-unsupported` when a waPC module does not support "v1". Does nothing for other modes.
   */
  checkProtocol(context: CallContext): void;
}
