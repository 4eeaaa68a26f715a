/** What one call of a guest may use. */
export interface CallLimits {
  /** Fuel: about one unit per WebAssembly instruction. See `rewrite.ts` for what is charged. */
  readonly fuel: number;
  /** Largest answer that is copied out of the guest, in bytes. */
  readonly answerBytes: number;
}

/** A guest's call of a host capability. What it throws reaches the guest as the error's text. */
export type HostCall = (binding: string, namespace: string, operation: string, payload: Uint8Array) => Uint8Array;

/** Everything that a guest may reach during one call. */
export interface CallContext {
  readonly limits: CallLimits;
  readonly hostCall: HostCall;
  /** Receives the guest's log lines (stderr, console), already capped in size. */
  readonly log: (text: string) => void;
}
