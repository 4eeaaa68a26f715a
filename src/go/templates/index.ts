export { failTemplate, invalidTemplate, TemplateError, UnknownFunctionError } from './errors.ts';
export { Template } from './template.ts';
export type { TemplateFunctions, TemplatePart } from './template.ts';
export { templateOutline } from './template-outline.ts';
export type { TemplateCall } from './template-outline.ts';
export type { Delimiters } from './template-lexer.ts';
export { BUILTIN_FUNCTIONS, isTrue, NO_VALUE } from './template-functions.ts';
export { chargeValue, limitedMeter, stepsToRead } from './template-meter.ts';
export type { LimitedMeter, TemplateMeter } from './template-meter.ts';
