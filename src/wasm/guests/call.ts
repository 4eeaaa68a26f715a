/** Limits of one guest call. */
export interface CallLimits {
  /** Fuel: about one unit per WebAssembly instruction. `metering.ts` lists the charges. */
  readonly fuel: number;
  /** Maximum size of the guest's answer in bytes. */
  readonly answerBytes: number;
}

/** A guest's call of a host capability. The guest receives the message of a thrown error. */
type HostCall = (binding: string, namespace: string, operation: string, payload: Uint8Array) => Uint8Array;

/** The limits and host functions of one guest call. */
export interface CallContext {
  readonly limits: CallLimits;
  readonly hostCall: HostCall;
  /** Receives the guest's log lines (stderr, console), already limited in size. */
  readonly log: (text: string) => void;
}
