import { CodedError } from '../values/index.ts';

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

/** @throws TemplateError `template-invalid` */
export function invalidTemplate(message: string): never {
  throw new TemplateError('template-invalid', `not a valid template: ${message}`);
}

/** @throws TemplateError `template-failed` */
export function failTemplate(message: string): never {
  throw new TemplateError('template-failed', `cannot execute the template: ${message}`);
}
