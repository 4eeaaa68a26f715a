import { CodedError } from '../../values/index.ts';

/** Why a template has no result. */
export type TemplateErrorCode =
  /** The template does not parse. */
  | 'template-invalid'
  /** The template parses, but cannot be executed with this data. */
  | 'template-failed'
  /** The execution takes more steps, or makes more text, than its limits allow. */
  | 'template-limit';

/** The only error class that this folder throws on purpose. */
export class TemplateError extends CodedError<TemplateErrorCode> {
  override readonly name: string = 'TemplateError';
}

/** A template calls a function that does not exist. */
export class UnknownFunctionError extends TemplateError {
  readonly functionName: string;
  readonly line: number;

  constructor(functionName: string, line: number) {
    super('template-invalid', `not a valid template: line ${line}: there is no function ${functionName}`);
    this.functionName = functionName;
    this.line = line;
  }
}

/**
 * @param line of the mistake, counted from 1, when it is known
 * @throws TemplateError `template-invalid`
 */
export function invalidTemplate(message: string, line?: number): never {
  throw new TemplateError('template-invalid', `not a valid template: ${atLine(line)}${message}`);
}

/** @throws TemplateError `template-failed` */
export function failTemplate(message: string): never {
  throw new TemplateError('template-failed', `${FAILED}${message}`);
}

const FAILED = 'cannot execute the template: ';

/** The error with the line of the action that failed; other errors as they are. */
export function withLine(error: unknown, line: number): unknown {
  return error instanceof TemplateError && error.code === 'template-failed' && error.message.startsWith(FAILED)
    ? new TemplateError(error.code, `${FAILED}${atLine(line)}${error.message.slice(FAILED.length)}`, { cause: error })
    : error;
}

function atLine(line: number | undefined): string {
  return line === undefined ? '' : `line ${line}: `;
}
