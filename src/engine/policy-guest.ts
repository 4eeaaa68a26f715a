import type { PolicyCode } from '../modules/index.ts';
import type { CallContext } from '../wasm/index.ts';
import type { GuestVerdict, SettingsVerdict } from './guest-verdict.ts';

/** One evaluation, as texts: nothing is parsed or written twice on the way to a guest. */
export interface GuestInput {
  /** In UTF-8. */
  readonly requestJson: Buffer;
  readonly settingsJson: string;
  /** Whether the request came by the raw route. */
  readonly isRaw: boolean;
  /** Objects of the cluster, for context-aware Rego policies, in the shape that their mode reads. */
  readonly inventoryJson?: string;
}

/**
 * The code of policies, of any kind, loaded into this thread. Keeps nothing between calls, so any number of policies
 * share one; their settings come with each call.
 */
export interface PolicyGuest {
  readonly mode: PolicyCode['mode'];
  /** Throws EngineError `guest-error` and `guest-timeout`. */
  validate(input: GuestInput, context: CallContext): GuestVerdict;
  /** Rego policies cannot check settings: always valid. Throws as {@link PolicyGuest.validate}. */
  validateSettings(settingsJson: string, context: CallContext): SettingsVerdict;
  /** Throws EngineError `protocol-unsupported` when a waPC module does not speak "v1"; other kinds have no protocol. */
  checkProtocol(context: CallContext): void;
}
