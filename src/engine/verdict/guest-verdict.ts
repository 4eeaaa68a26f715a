import { errorText, isNestedDeeper, parseJson } from '../../values/index.ts';
import { EngineError } from '../values/errors.ts';
import { isJsonObject, MAX_NESTING } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';

/** A policy's answer to one request, independent of its execution mode. */
export interface GuestVerdict {
  readonly accepted: boolean;
  readonly message?: string;
  /** Goes to `status.code`. */
  readonly code?: number;
  /** The object as the policy changed it. */
  readonly mutatedObject?: JsonValue;
  /** A JSON Patch as JSON text. Rego policies in OPA mode return patches instead of objects. */
  readonly patch?: string;
  readonly auditAnnotations: Readonly<Record<string, string>> | null;
  readonly warnings: readonly string[] | null;
  /** Of builtin policies: it denies only because parameters do not exist in the namespace of the request. */
  readonly lacksParameters?: true;
}

/** A policy's answer to its settings. */
export type SettingsVerdict = { readonly valid: true } | { readonly valid: false; readonly message: string };

/** Message of a Gatekeeper violation without a text. Kubewarden ignores such violations and allows the request. */
export const VIOLATION_WITHOUT_TEXT = 'the policy reported a violation whose msg is not text';

/**
 * Parses the answer of `validate`: `{accepted, message?, code?, mutated_object?, audit_annotations?, warnings?}`; null
 * counts as missing, unknown keys are ignored. Throws `guest-error` for anything else.
 */
export function parseGuestVerdict(answer: Uint8Array | string): GuestVerdict {
  const fields = new AnswerFields(parseAnswer(answer));
  const message = fields.text('message');
  const code = fields.statusCode('code');
  const mutatedObject = fields.value('mutated_object');
  return {
    accepted: fields.boolean('accepted'),
    ...(message === undefined ? {} : { message }),
    ...(code === undefined ? {} : { code }),
    ...(mutatedObject === undefined ? {} : { mutatedObject }),
    auditAnnotations: fields.texts('audit_annotations'),
    warnings: fields.textList('warnings'),
  };
}

/** Parses the answer of `validate_settings`: `{valid, message?}`. Throws `guest-error` for anything else. */
export function parseSettingsVerdict(answer: Uint8Array | string): SettingsVerdict {
  const fields = new AnswerFields(parseAnswer(answer));
  const message = fields.text('message');
  return fields.boolean('valid')
    ? { valid: true }
    : { valid: false, message: message ?? 'the policy refuses the settings and does not say why' };
}

/**
 * Parses the result of a Rego policy in OPA mode: `[{"result": {"response": AdmissionResponse}}]`. Throws `guest-error`
 * when the result is undefined or has another shape.
 */
export function parseOpaVerdict(answer: string): GuestVerdict {
  const result = regoResult(answer);
  const response = isJsonObject(result) ? result.response : undefined;
  if (!isJsonObject(response)) {
    throw malformed('the result of the Rego policy has no "response": expected an AdmissionReview');
  }
  const fields = new AnswerFields(response);
  const status = fields.object('status');
  const message = status?.text('message');
  const code = status?.statusCode('code');
  const encoded = fields.text('patch');
  const patch = encoded === undefined ? undefined : decodedPatch(encoded);
  return {
    accepted: fields.boolean('allowed'),
    ...(message === undefined ? {} : { message }),
    ...(code === undefined ? {} : { code }),
    ...(patch === undefined ? {} : { patch }),
    auditAnnotations: fields.texts('auditAnnotations'),
    warnings: fields.textList('warnings'),
  };
}

/**
 * Parses the result of a Rego policy in Gatekeeper mode: `[{"result": [{"msg": …}]}]`. Any violation denies, also one
 * without a text. Throws `guest-error` when the result is not a list.
 */
export function parseGatekeeperVerdict(answer: string): GuestVerdict {
  const violations = regoResult(answer);
  if (!Array.isArray(violations)) {
    throw malformed('the result of the Rego policy is not a list of violations');
  }
  const noExtras = { auditAnnotations: null, warnings: null };
  if (violations.length === 0) {
    return { accepted: true, ...noExtras };
  }
  const messages = violations.map((violation) =>
    isJsonObject(violation) && typeof violation.msg === 'string' ? violation.msg : VIOLATION_WITHOUT_TEXT,
  );
  return { accepted: false, message: messages.join(', '), ...noExtras };
}

function regoResult(answer: string): JsonValue | undefined {
  const results = decodeJson(answer);
  if (!Array.isArray(results)) {
    throw malformed('the answer of the Rego policy is not a list of results');
  }
  const first = results[0];
  if (!isJsonObject(first) || first.result === undefined) {
    throw malformed('the result of the Rego policy is undefined: check that the entrypoint is the rule that decides');
  }
  return first.result;
}

/** Decodes a JSON Patch in base64 to JSON text. */
function decodedPatch(encoded: string): string {
  const patch = Buffer.from(encoded, 'base64').toString();
  let operations: unknown;
  try {
    operations = parseJson(patch);
  } catch (error) {
    throw malformed(`patch: expected a JSON Patch in base64: ${errorText(error)}`);
  }
  if (!Array.isArray(operations) || !operations.every(isJsonObject)) {
    throw malformed('patch: expected a JSON Patch in base64, got other JSON');
  }
  return patch;
}

function parseAnswer(answer: Uint8Array | string): JsonObject {
  const value = decodeJson(typeof answer === 'string' ? answer : decode(answer));
  if (!isJsonObject(value)) {
    throw malformed('expected an object');
  }
  return value;
}

function decode(answer: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(answer);
  } catch {
    throw malformed('expected UTF-8');
  }
}

function decodeJson(text: string): JsonValue {
  let value: JsonValue;
  // Answers without a mutated object are small. The check protects the recursive diff of those with one.
  if (isNestedDeeper(text, MAX_NESTING)) {
    throw malformed(`expected at most ${MAX_NESTING} levels of nesting`);
  }
  try {
    value = parseJson(text) as JsonValue;
  } catch {
    throw malformed(text === '' ? 'expected JSON, got nothing' : 'expected JSON');
  }
  return value;
}

function malformed(problem: string): EngineError {
  return new EngineError('guest-error', `the policy's answer cannot be read: ${problem}`);
}

/** Reads the fields of an answer; null counts as missing. */
class AnswerFields {
  readonly #object: JsonObject;

  constructor(object: JsonObject) {
    this.#object = object;
  }

  value(key: string): JsonValue | undefined {
    return Object.hasOwn(this.#object, key) ? (this.#object[key] ?? undefined) : undefined;
  }

  boolean(key: string): boolean {
    const value = this.value(key);
    if (typeof value !== 'boolean') {
      throw malformed(`${key}: expected true or false, got ${value === undefined ? 'nothing' : typeof value}`);
    }
    return value;
  }

  text(key: string): string | undefined {
    const value = this.value(key);
    if (value !== undefined && typeof value !== 'string') {
      throw malformed(`${key}: expected text, got ${typeof value}`);
    }
    return value;
  }

  /** An unsigned 16 bit number, as in Kubewarden's SDKs. */
  statusCode(key: string): number | undefined {
    const value = this.value(key);
    if (value === undefined) {
      return undefined;
    }
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 0xffff) {
      throw malformed(`${key}: expected a whole number from 0 to 65535`);
    }
    return value;
  }

  object(key: string): AnswerFields | undefined {
    const value = this.value(key);
    if (value === undefined) {
      return undefined;
    }
    if (!isJsonObject(value)) {
      throw malformed(`${key}: expected an object, got ${typeof value}`);
    }
    return new AnswerFields(value);
  }

  texts(key: string): Record<string, string> | null {
    const value = this.value(key);
    if (value === undefined) {
      return null;
    }
    if (!isJsonObject(value) || !Object.values(value).every((text) => typeof text === 'string')) {
      throw malformed(`${key}: expected an object of texts`);
    }
    return value as Record<string, string>;
  }

  textList(key: string): string[] | null {
    const value = this.value(key);
    if (value === undefined) {
      return null;
    }
    if (!Array.isArray(value) || !value.every((text) => typeof text === 'string')) {
      throw malformed(`${key}: expected a list of texts`);
    }
    return value;
  }
}
