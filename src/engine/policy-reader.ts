import { EngineError } from './errors.ts';
import { parseGroupExpression } from './group-expression.ts';
import { isJsonObject } from './json-text.ts';
import type { JsonObject, JsonValue } from './json-text.ts';
import { unknownKeyHint } from './nearest-key.ts';
import type {
  ContextAwareResource,
  FailurePolicy,
  GroupMemberDefinition,
  ModuleUse,
  PolicyDefinition,
  PolicyMode,
} from './policy-definition.ts';

/** What can be wrong with one policy. */
export type PolicyProblemCode =
  /** The id is empty, too long, or has a "/" or a control character in it. */
  | 'invalid-id'
  /** A key that this kind of policy does not have. */
  | 'unknown-key'
  /** A value of another type than the key takes. */
  | 'wrong-type'
  /** A value of the right type that is not allowed. */
  | 'invalid-value'
  /** A required key is missing. */
  | 'missing-key'
  /** Both `module` and `policies`: neither a policy nor a group. */
  | 'ambiguous-kind'
  /** A member's name is no identifier, or a word that CEL reserves. */
  | 'invalid-member-name'
  /** The group's expression does not parse, or names members that do not exist. */
  | 'invalid-expression';

/** A problem without its place in the file. `path` leads to the value inside the policy. */
export interface PolicyFault {
  readonly code: PolicyProblemCode;
  readonly message: string;
  readonly path: readonly string[];
}

/** Ids are the names of Kubernetes objects with a prefix; upstream's limit for the whole is 253 as well. */
export const MAX_ID_LENGTH = 253;
/** The API server gives a webhook at most 30 s; ten times that serves callers of the raw route. */
export const MAX_TIMEOUT_SECONDS = 300;
/** Members that one group may have: each is a guest call within one review's time. */
export const MAX_GROUP_MEMBERS = 64;
/** Values in the settings of one policy after aliases are expanded: stops a "billion laughs" file at megabytes. */
export const MAX_SETTINGS_VALUES = 100_000;
/** The same for all policies of a file, which may share what an alias names: about 200 MB at worst. */
export const MAX_FILE_SETTINGS_VALUES = 2_000_000;
/** Nesting of settings. Guests in Rust parse with a limit of 128. */
export const MAX_SETTINGS_DEPTH = 100;

const MEMBER_NAME = /^[_a-zA-Z][_a-zA-Z0-9]*$/;
const CAPABILITY_PATTERN = /^(?:\*|[a-z0-9_]+(?:\/[a-z0-9_]+)*\/\*|[a-z0-9_]+(?:\/[a-z0-9_]+)+)$/;
const CEL_RESERVED = new Set(
  'as break const continue else false for function if import in let loop null package namespace return true var void while'.split(
    ' ',
  ),
);

/** Whether a text names capabilities of the host: one by its path, all of a kind, or all. */
export function isCapabilityPattern(text: string): boolean {
  return CAPABILITY_PATTERN.test(text);
}

const MODULE_KEYS = ['module', 'settings', 'contextAwareResources', 'timeoutEvalSeconds', 'hostCapabilities'];
/** Keys of every entry; the controller writes `namespacedName`, for nobody. */
const ENTRY_KEYS = ['policyMode', 'message', 'failurePolicy', 'namespacedName'];
const POLICY_KEYS = [...MODULE_KEYS, ...ENTRY_KEYS, 'allowedToMutate'];
const GROUP_KEYS = [...ENTRY_KEYS, 'expression', 'policies'];
const MEMBER_KEYS = MODULE_KEYS;

const NO_RESOURCES: readonly ContextAwareResource[] = Object.freeze([]);
const NO_CAPABILITIES: readonly string[] = Object.freeze([]);

/** Counts the values in the settings of all policies of one file. */
export class ValueBudget {
  #left = MAX_FILE_SETTINGS_VALUES;

  /** Takes one; false when none is left. */
  take(): boolean {
    return --this.#left >= 0;
  }
}

/** Reads one entry of the policies file. Either a definition, or at least one fault. */
export function readPolicyDefinition(
  id: string,
  value: unknown,
  budget: ValueBudget = new ValueBudget(),
):
  | { readonly definition: PolicyDefinition; readonly faults?: undefined }
  | { readonly definition?: undefined; readonly faults: readonly PolicyFault[] } {
  const faults: PolicyFault[] = [];
  checkId(id, faults);
  if (!isJsonObject(value)) {
    faults.push({
      code: 'wrong-type',
      message: `expected a mapping with "module" or "policies", got ${typeName(value)}`,
      path: [],
    });
    return { faults };
  }
  const fields = new Fields(value, [], faults, budget);
  const isGroup = fields.has('policies') || (fields.has('expression') && !fields.has('module'));
  if (isGroup && fields.has('module')) {
    const message = 'expected either "module" (a policy) or "policies" (a group), got both: remove one';
    faults.push({ code: 'ambiguous-kind', message, path: ['policies'] });
    return { faults };
  }
  const definition = isGroup ? readGroup(id, fields) : readSingle(id, fields);
  return faults.length > 0 ? { faults } : { definition };
}

function checkId(id: string, faults: PolicyFault[]): void {
  const fault = (problem: string): void => {
    faults.push({ code: 'invalid-id', message: `the policy id is invalid: ${problem}. Rename the policy.`, path: [] });
  };
  if (id === '') {
    fault('expected at least one character');
  } else if (id.length > MAX_ID_LENGTH) {
    fault(`expected at most ${MAX_ID_LENGTH} characters, got ${id.length}`);
  } else if (id.includes('/')) {
    fault('expected no "/", which separates a group from its members');
  } else if (/[\p{Cc}\p{Cs}]/u.test(id)) {
    fault('expected no control characters');
  }
}

function readSingle(id: string, fields: Fields): PolicyDefinition {
  fields.knownKeys(POLICY_KEYS, 'a policy');
  const message = fields.string('message');
  return {
    kind: 'policy',
    id,
    mode: readMode(fields),
    allowedToMutate: fields.boolean('allowedToMutate') ?? false,
    ...readModuleUse(fields),
    ...(message === undefined ? {} : { message }),
    failurePolicy: readFailurePolicy(fields),
  };
}

function readGroup(id: string, fields: Fields): PolicyDefinition {
  fields.knownKeys(GROUP_KEYS, 'a policy group');
  const members = readMembers(fields);
  const expression = fields.requiredString('expression');
  const names = new Set(members.map((member) => member.name));
  if (expression !== '' && names.size > 0) {
    checkExpression(expression, names, fields);
  }
  return {
    kind: 'group',
    id,
    mode: readMode(fields),
    expression,
    message: fields.requiredString('message'),
    members,
    failurePolicy: readFailurePolicy(fields),
  };
}

function readMembers(fields: Fields): GroupMemberDefinition[] {
  const policies = fields.mapping('policies');
  if (policies === undefined) {
    if (!fields.has('policies')) {
      fields.missing('policies');
    }
    return [];
  }
  const names = Object.keys(policies);
  if (names.length === 0 || names.length > MAX_GROUP_MEMBERS) {
    fields.fault('invalid-value', 'policies', `expected 1 to ${MAX_GROUP_MEMBERS} members, got ${names.length}`);
    return [];
  }
  return names.map((name) => {
    const member = fields.inside('policies', name, policies[name] ?? null);
    if (!MEMBER_NAME.test(name) || CEL_RESERVED.has(name)) {
      const expected = 'expected a letter or _ and then letters, digits or _, and no word that CEL reserves';
      member.faultHere('invalid-member-name', `the member name ${JSON.stringify(name)} is invalid: ${expected}`);
    }
    member.knownKeys(MEMBER_KEYS, 'a member of a group');
    return { name, ...readModuleUse(member) };
  });
}

function checkExpression(expression: string, names: ReadonlySet<string>, fields: Fields): void {
  try {
    parseGroupExpression(expression, names);
  } catch (error) {
    if (!(error instanceof EngineError)) {
      throw error;
    }
    fields.fault('invalid-expression', 'expression', error.message);
  }
}

function readModuleUse(fields: Fields): ModuleUse {
  const timeoutEvalSeconds = readTimeout(fields);
  return {
    module: fields.requiredString('module'),
    settings: fields.json('settings'),
    contextAwareResources: readResources(fields),
    ...(timeoutEvalSeconds === undefined ? {} : { timeoutEvalSeconds }),
    hostCapabilities: readCapabilities(fields),
  };
}

function readMode(fields: Fields): PolicyMode {
  return fields.oneOf('policyMode', ['protect', 'monitor']) ?? 'protect';
}

function readFailurePolicy(fields: Fields): FailurePolicy {
  return fields.oneOf('failurePolicy', ['Fail', 'Ignore']) ?? 'Fail';
}

function readTimeout(fields: Fields): number | undefined {
  const value = fields.value('timeoutEvalSeconds');
  if (value === undefined) {
    return undefined;
  }
  const isValid = typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_TIMEOUT_SECONDS;
  if (!isValid) {
    const code = typeof value === 'number' ? 'invalid-value' : 'wrong-type';
    fields.fault(
      code,
      'timeoutEvalSeconds',
      `expected a whole number of seconds from 1 to ${MAX_TIMEOUT_SECONDS}, got ${show(value)}`,
    );
    return undefined;
  }
  return value;
}

function readResources(fields: Fields): readonly ContextAwareResource[] {
  const list = fields.list('contextAwareResources');
  if (list === undefined || list.length === 0) {
    return NO_RESOURCES;
  }
  return list.map((element, index) => {
    const resource = fields.inside('contextAwareResources', String(index), element);
    resource.knownKeys(['apiVersion', 'kind'], 'a context-aware resource');
    return { apiVersion: resource.requiredString('apiVersion'), kind: resource.requiredString('kind') };
  });
}

function readCapabilities(fields: Fields): readonly string[] {
  const list = fields.list('hostCapabilities');
  if (list === undefined || list.length === 0) {
    return NO_CAPABILITIES;
  }
  const patterns: string[] = [];
  for (const [index, pattern] of list.entries()) {
    if (typeof pattern === 'string' && isCapabilityPattern(pattern)) {
      patterns.push(pattern);
    } else {
      const expected =
        'expected "*", "net/*", "oci/v1/*" or the path of one capability such as "net/v1/dns_lookup_host"';
      const code = typeof pattern === 'string' ? 'invalid-value' : 'wrong-type';
      fields.fault(code, 'hostCapabilities', `${expected}, got ${show(pattern)}`, String(index));
    }
  }
  return patterns;
}

/** Reads the keys of one mapping and notes what is wrong with them. A null value counts as a missing one, as upstream. */
class Fields {
  readonly #object: JsonObject;
  readonly #path: readonly string[];
  readonly #faults: PolicyFault[];
  readonly #budget: ValueBudget;

  constructor(object: JsonObject, path: readonly string[], faults: PolicyFault[], budget: ValueBudget) {
    this.#budget = budget;
    this.#object = object;
    this.#path = path;
    this.#faults = faults;
  }

  has(key: string): boolean {
    return this.value(key) !== undefined;
  }

  value(key: string): JsonValue | undefined {
    return Object.hasOwn(this.#object, key) ? (this.#object[key] ?? undefined) : undefined;
  }

  /** The fields of the mapping at `key`.`inner`; without fields, and a fault, when it is none. */
  inside(key: string, inner: string, value: JsonValue): Fields {
    const path = [...this.#path, key, inner];
    if (!isJsonObject(value)) {
      this.#faults.push({ code: 'wrong-type', message: `expected a mapping, got ${typeName(value)}`, path });
      return new Fields({}, path, [], this.#budget);
    }
    return new Fields(value, path, this.#faults, this.#budget);
  }

  fault(code: PolicyProblemCode, key: string, message: string, ...below: string[]): void {
    this.#faults.push({ code, message: `${key}: ${message}`, path: [...this.#path, key, ...below] });
  }

  faultHere(code: PolicyProblemCode, message: string): void {
    this.#faults.push({ code, message, path: this.#path });
  }

  missing(key: string): void {
    this.#faults.push({
      code: 'missing-key',
      message: `expected the key "${key}", which is missing`,
      path: this.#path,
    });
  }

  knownKeys(known: readonly string[], owner: string): void {
    for (const key of Object.keys(this.#object)) {
      if (!known.includes(key)) {
        const message = `unknown key ${show(key)} in ${owner}: ${unknownKeyHint(key, known)}`;
        this.#faults.push({ code: 'unknown-key', message, path: [...this.#path, key] });
      }
    }
  }

  string(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === 'string') {
      return value;
    }
    const hint = typeof value === 'object' ? '' : ': put it in quotes';
    this.fault('wrong-type', key, `expected text, got ${show(value)}${hint}`);
    return undefined;
  }

  requiredString(key: string): string {
    const value = this.string(key);
    if (!this.has(key)) {
      this.missing(key);
    } else if (value === '') {
      this.fault('invalid-value', key, 'expected some text, got ""');
    }
    return value ?? '';
  }

  boolean(key: string): boolean | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === 'boolean') {
      return value;
    }
    this.fault('wrong-type', key, `expected true or false, got ${show(value)}`);
    return undefined;
  }

  oneOf<Choice extends string>(key: string, choices: readonly Choice[]): Choice | undefined {
    const value = this.string(key);
    if (value === undefined) {
      return undefined;
    }
    const choice = choices.find((candidate) => candidate === value);
    if (choice === undefined) {
      this.fault('invalid-value', key, `expected ${choices.join(' or ')}, got ${show(value)}`);
    }
    return choice;
  }

  list(key: string): readonly JsonValue[] | undefined {
    const value = this.value(key);
    if (value === undefined || Array.isArray(value)) {
      return value;
    }
    this.fault('wrong-type', key, `expected a list, got ${typeName(value)}`);
    return undefined;
  }

  mapping(key: string): JsonObject | undefined {
    const value = this.value(key);
    if (value === undefined || isJsonObject(value)) {
      return value;
    }
    this.fault('wrong-type', key, `expected a mapping, got ${typeName(value)}`);
    return undefined;
  }

  /** A mapping of JSON values, copied so that nothing is shared through aliases; `{}` when it is missing. */
  json(key: string): JsonObject {
    const value = this.mapping(key);
    if (value === undefined) {
      return {};
    }
    try {
      return new JsonCopy(this.#budget).object(value, []);
    } catch (error) {
      if (!(error instanceof NotJson)) {
        throw error;
      }
      this.fault('invalid-value', key, error.message, ...error.path);
      return {};
    }
  }
}

class NotJson extends Error {
  readonly path: readonly string[];

  constructor(message: string, path: readonly string[]) {
    super(message);
    this.path = path;
  }
}

/** Copies what a YAML parser gave into plain JSON, within limits. */
class JsonCopy {
  readonly #budget: ValueBudget;
  #values = 0;

  constructor(budget: ValueBudget) {
    this.#budget = budget;
  }

  object(value: JsonObject, path: string[]): JsonObject {
    const copy: JsonObject = {};
    for (const key of Object.keys(value)) {
      path.push(key);
      const member = this.#value(value[key] ?? null, path);
      path.pop();
      if (key === '__proto__') {
        Object.defineProperty(copy, key, { value: member, enumerable: true, configurable: true, writable: true });
      } else {
        copy[key] = member;
      }
    }
    return copy;
  }

  #value(value: JsonValue, path: string[]): JsonValue {
    if (++this.#values > MAX_SETTINGS_VALUES || !this.#budget.take()) {
      throw new NotJson(
        `expected at most ${MAX_SETTINGS_VALUES} values (${MAX_FILE_SETTINGS_VALUES} in all policies) after aliases are expanded, got more`,
        [],
      );
    }
    if (typeof value === 'number') {
      return this.#number(value, path);
    }
    if (typeof value !== 'object' || value === null) {
      return value;
    }
    if (path.length > MAX_SETTINGS_DEPTH) {
      throw new NotJson(`expected at most ${MAX_SETTINGS_DEPTH} levels of nesting, got more`, []);
    }
    if (!Array.isArray(value)) {
      return this.object(value, path);
    }
    return value.map((element, index) => {
      path.push(String(index));
      const copy = this.#value(element, path);
      path.pop();
      return copy;
    });
  }

  #number(value: number, path: readonly string[]): number {
    if (!Number.isFinite(value)) {
      throw new NotJson(`expected a number that JSON has, got ${value}`, [...path]);
    }
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      const limit = Number.MAX_SAFE_INTEGER;
      throw new NotJson(
        `expected a whole number from -${limit} to ${limit}, got a larger one, whose last digits would be lost: put it in quotes`,
        [...path],
      );
    }
    return value;
  }
}

function typeName(value: unknown): string {
  if (value === null || value === undefined) {
    return 'nothing';
  }
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'a mapping' : show(value as JsonValue);
}

/** A short form of a value, for messages. */
function show(value: JsonValue): string {
  if (typeof value === 'object') {
    return typeName(value);
  }
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
