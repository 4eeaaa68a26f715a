import { CodedError, type TextPosition } from '../../values/index.ts';

/** Every way the engine can fail. A denial is a value (see verdict.ts), never one of these. */
export type EngineErrorCode =
  /** The policies file is larger than {@link MAX_POLICIES_FILE_LENGTH}. */
  | 'policies-file-too-large'
  /** The policies file is not YAML or JSON, or names one id twice. Position and excerpt are set. */
  | 'policies-file-malformed'
  /** The policies file parses, but it is not one mapping of ids to policies, or holds too many of them. */
  | 'policies-file-wrong-shape'
  /** A review is larger than {@link MAX_REVIEW_BYTES}. */
  | 'review-too-large'
  /** A review is empty, not UTF-8 or not JSON. */
  | 'review-malformed'
  /** A review is JSON of another shape than an AdmissionReview; the message names the field. */
  | 'review-wrong-shape'
  /** A review or a guest's answer is nested deeper than {@link MAX_NESTING}. */
  | 'nested-too-deep'
  /** A group expression does not parse, or names a member that the group does not have. */
  | 'expression-invalid'
  /** A guest trapped, or answered something that is not a verdict. */
  | 'guest-error'
  /** A guest used up its fuel. */
  | 'guest-timeout'
  /** A waPC module speaks another protocol than "v1". */
  | 'protocol-unsupported'
  /** A policy called a host capability that it was not granted. The message names the field to change. */
  | 'capability-refused'
  /** A granted host capability failed. */
  | 'capability-failed'
  /** The file of a recorded session cannot be read. */
  | 'session-malformed'
  /** A catalogue of network providers is not YAML or JSON, or a field is wrong. The message names file and path. */
  | 'catalogue-invalid';

export interface EngineErrorOptions {
  readonly cause?: unknown;
  readonly position?: TextPosition;
}

/** The only class of errors that this folder throws. */
export class EngineError extends CodedError<EngineErrorCode> {
  override readonly name = 'EngineError';
  readonly position: TextPosition | undefined;

  constructor(code: EngineErrorCode, message: string, { position, ...options }: EngineErrorOptions = {}) {
    super(code, message, options);
    this.position = position;
  }
}
