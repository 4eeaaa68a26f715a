import type { ContextAwareResource } from '../../resources/index.ts';
import { EngineError } from '../values/errors.ts';
import { describeValue, FieldReader } from '../values/field-reader.ts';
import type { FieldFault, KeyPath } from '../values/field-reader.ts';
import { parseGroupExpression } from './group-expression.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { readParameters } from '../parameters/read-parameters.ts';
import type {
  FailurePolicy,
  GroupMemberDefinition,
  ModuleUse,
  PolicyDefinition,
  PolicyMode,
} from './policy-definition.ts';

/** Kinds of mistakes in a policy. */
export type PolicyProblemCode =
  /** The id is empty, too long, or has a "/" or a control character in it. */
  | 'invalid-id'
  /** A key that this kind of policy does not have. */
  | 'unknown-key'
  /** A value of the wrong type. */
  | 'wrong-type'
  /** A value of the right type that is not allowed. */
  | 'invalid-value'
  /** A required key is missing. */
  | 'missing-key'
  /** Both `module` and `policies`: neither a policy nor a group. */
  | 'ambiguous-kind'
  /** A member's name is not an identifier, or is a reserved word of CEL. */
  | 'invalid-member-name'
  /** The group's expression does not parse, or names members that do not exist. */
  | 'invalid-expression';

/** A mistake without its position in the file. `path` leads to the value inside the policy. */
export interface PolicyFault extends Omit<FieldFault, 'code'> {
  readonly code: PolicyProblemCode;
}

/** Ids are names of Kubernetes objects with a prefix. Kubewarden's limit is 253 as well. */
const MAX_ID_LENGTH = 253;
/** API servers wait at most 30 s for a webhook; ten times that serves callers of the raw route. */
const MAX_TIMEOUT_SECONDS = 300;
/** Maximum number of members of a group: each is a guest call within the time of one review. */
const MAX_GROUP_MEMBERS = 64;
/** Maximum number of values in a policy's settings after aliases are expanded, which bounds a "billion laughs" file. */
const MAX_SETTINGS_VALUES = 100_000;
/** The same for all policies of a file, which may share aliases: about 200 MB at worst. */
const MAX_FILE_SETTINGS_VALUES = 2_000_000;
/** Nesting of settings. Guests in Rust parse with a limit of 128. */
const MAX_SETTINGS_DEPTH = 100;

const MEMBER_NAME = /^[_a-zA-Z][_a-zA-Z0-9]*$/;
const CAPABILITY_PATTERN = /^(?:\*|[a-z0-9_]+(?:\/[a-z0-9_]+)*\/\*|[a-z0-9_]+(?:\/[a-z0-9_]+)+)$/;
const CEL_RESERVED = new Set(
  'as break const continue else false for function if import in let loop null package namespace return true var void while'.split(
    ' ',
  ),
);

/** Whether a text is a pattern of host capabilities: a path, all of a namespace, or all. */
export function isCapabilityPattern(text: string): boolean {
  return CAPABILITY_PATTERN.test(text);
}

const MODULE_KEYS = [
  'module',
  'settings',
  'contextAwareResources',
  'timeoutEvalSeconds',
  'hostCapabilities',
  'parameters',
];
/** Keys of every entry. Kubewarden's controller writes `namespacedName`, which is ignored. */
const ENTRY_KEYS = ['policyMode', 'message', 'failurePolicy', 'podTemplates', 'namespacedName'];
const POLICY_KEYS = [...MODULE_KEYS, ...ENTRY_KEYS, 'allowedToMutate'];
const GROUP_KEYS = [...ENTRY_KEYS, 'expression', 'policies'];
const MEMBER_KEYS = MODULE_KEYS;

const NO_RESOURCES: readonly ContextAwareResource[] = Object.freeze([]);
const NO_CAPABILITIES: readonly string[] = Object.freeze([]);

/** Counts the values in the settings of all policies of one file. */
export class ValueBudget {
  #left = MAX_FILE_SETTINGS_VALUES;

  /** Takes one value from the budget; false when it is used up. */
  take(): boolean {
    return --this.#left >= 0;
  }
}

/** Reads one entry of the policies file: a definition, or at least one fault. */
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
      message: `expected a mapping with "module" or "policies", got ${describeValue(value)}`,
      path: [],
    });
    return { faults };
  }
  const fields = new FieldReader(value, (fault) => faults.push(fault));
  const isGroup = fields.has('policies') || (fields.has('expression') && !fields.has('module'));
  if (isGroup && fields.has('module')) {
    const message = 'expected either "module" (a policy) or "policies" (a group), got both: remove one';
    faults.push({ code: 'ambiguous-kind', message, path: ['policies'] });
    return { faults };
  }
  const definition = isGroup ? readGroup(id, fields, budget, faults) : readSingle(id, fields, budget);
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

function readSingle(id: string, fields: FieldReader, budget: ValueBudget): PolicyDefinition {
  fields.knownKeys(POLICY_KEYS, { owner: 'a policy' });
  const message = fields.text('message');
  return {
    kind: 'policy',
    id,
    mode: readMode(fields),
    allowedToMutate: fields.boolean('allowedToMutate') ?? false,
    ...readModuleUse(fields, budget),
    ...(message === undefined ? {} : { message }),
    failurePolicy: readFailurePolicy(fields),
    ...readPodTemplates(fields),
  };
}

function readGroup(id: string, fields: FieldReader, budget: ValueBudget, faults: PolicyFault[]): PolicyDefinition {
  fields.knownKeys(GROUP_KEYS, { owner: 'a policy group' });
  const members = readMembers(fields, budget, faults);
  const expression = fields.requiredText('expression');
  const names = new Set(members.map((member) => member.name));
  if (expression !== '' && names.size > 0) {
    checkExpression(expression, names, faults);
  }
  return {
    kind: 'group',
    id,
    mode: readMode(fields),
    expression,
    message: fields.requiredText('message'),
    members,
    failurePolicy: readFailurePolicy(fields),
    ...readPodTemplates(fields),
  };
}

function readMembers(fields: FieldReader, budget: ValueBudget, faults: PolicyFault[]): GroupMemberDefinition[] {
  const policies = fields.mapping('policies');
  if (policies === undefined) {
    if (!fields.has('policies')) {
      fields.missing('policies');
    }
    return [];
  }
  const names = Object.keys(policies);
  if (names.length === 0 || names.length > MAX_GROUP_MEMBERS) {
    fields.fault('policies', `expected 1 to ${MAX_GROUP_MEMBERS} members, got ${names.length}`);
    return [];
  }
  return names.map((name) => {
    const member = new FieldReader(policies[name], fields.report, ['policies', name]);
    if (!MEMBER_NAME.test(name) || CEL_RESERVED.has(name)) {
      const expected = 'expected a letter or _ and then letters, digits or _, and no word that CEL reserves';
      const message = `the member name ${JSON.stringify(name)} is invalid: ${expected}`;
      faults.push({ code: 'invalid-member-name', message, path: member.path });
    }
    member.knownKeys(MEMBER_KEYS, { owner: 'a member of a group' });
    return { name, ...readModuleUse(member, budget) };
  });
}

function checkExpression(expression: string, names: ReadonlySet<string>, faults: PolicyFault[]): void {
  try {
    parseGroupExpression(expression, names);
  } catch (error) {
    if (!(error instanceof EngineError)) {
      throw error;
    }
    faults.push({ code: 'invalid-expression', key: 'expression', message: error.message, path: ['expression'] });
  }
}

function readModuleUse(fields: FieldReader, budget: ValueBudget): ModuleUse {
  const timeoutEvalSeconds = readTimeout(fields);
  const parameters = readParameters(fields);
  return {
    module: fields.requiredText('module'),
    settingsJson: readJson(fields, 'settings', budget),
    contextAwareResources: readResources(fields),
    ...(timeoutEvalSeconds === undefined ? {} : { timeoutEvalSeconds }),
    ...(parameters === undefined ? {} : { parameters }),
    hostCapabilities: readCapabilities(fields),
  };
}

function readMode(fields: FieldReader): PolicyMode {
  return fields.oneOf('policyMode', ['protect', 'monitor']) ?? 'protect';
}

function readFailurePolicy(fields: FieldReader): FailurePolicy {
  return fields.oneOf('failurePolicy', ['Fail', 'Ignore']) ?? 'Fail';
}

function readPodTemplates(fields: FieldReader): Pick<PolicyDefinition, 'podTemplates'> {
  const podTemplates = fields.oneOf('podTemplates', ['Ignore', 'Warn', 'Enforce']);
  return podTemplates === undefined || podTemplates === 'Ignore' ? {} : { podTemplates };
}

function readTimeout(fields: FieldReader): number | undefined {
  const value = fields.value('timeoutEvalSeconds');
  if (value === undefined) {
    return undefined;
  }
  const isValid = typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_TIMEOUT_SECONDS;
  if (!isValid) {
    fields.report({
      code: typeof value === 'number' ? 'invalid-value' : 'wrong-type',
      key: 'timeoutEvalSeconds',
      message: `expected a whole number of seconds from 1 to ${MAX_TIMEOUT_SECONDS}, got ${describeValue(value)}`,
      path: [...fields.path, 'timeoutEvalSeconds'],
    });
    return undefined;
  }
  return value;
}

function readResources(fields: FieldReader): readonly ContextAwareResource[] {
  const resources = fields.each('contextAwareResources');
  if (resources.length === 0) {
    return NO_RESOURCES;
  }
  return resources.map((resource) => {
    resource.knownKeys(['apiVersion', 'kind'], { owner: 'a context-aware resource' });
    return { apiVersion: resource.requiredText('apiVersion'), kind: resource.requiredText('kind') };
  });
}

function readCapabilities(fields: FieldReader): readonly string[] {
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
      fields.report({
        code: typeof pattern === 'string' ? 'invalid-value' : 'wrong-type',
        key: 'hostCapabilities',
        message: `${expected}, got ${describeValue(pattern)}`,
        path: [...fields.path, 'hostCapabilities', index],
      });
    }
  }
  return patterns;
}

/** The JSON text of a mapping; `{}` when it is missing. */
function readJson(fields: FieldReader, key: string, budget: ValueBudget): string {
  const value = fields.mapping(key);
  if (value === undefined) {
    return '{}';
  }
  try {
    new JsonCheck(budget).object(value, []);
    return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof NotJson)) {
      throw error;
    }
    fields.fault(key, error.message, ...error.path);
    return '{}';
  }
}

class NotJson extends Error {
  readonly path: KeyPath;

  constructor(message: string, path: KeyPath) {
    super(message);
    this.path = path;
  }
}

/** Checks that values of a YAML parser can be written as JSON, within limits. */
class JsonCheck {
  readonly #budget: ValueBudget;
  #values = 0;

  constructor(budget: ValueBudget) {
    this.#budget = budget;
  }

  /** @throws NotJson */
  object(value: JsonObject, path: (string | number)[]): void {
    for (const key of Object.keys(value)) {
      path.push(key);
      this.#value(value[key] ?? null, path);
      path.pop();
    }
  }

  #value(value: JsonValue, path: (string | number)[]): void {
    if (++this.#values > MAX_SETTINGS_VALUES || !this.#budget.take()) {
      throw new NotJson(
        `expected at most ${MAX_SETTINGS_VALUES} values (${MAX_FILE_SETTINGS_VALUES} in all policies) after aliases are expanded, got more`,
        [],
      );
    }
    if (typeof value === 'number') {
      this.#number(value, path);
    }
    if (typeof value !== 'object' || value === null) {
      return;
    }
    if (path.length > MAX_SETTINGS_DEPTH) {
      throw new NotJson(`expected at most ${MAX_SETTINGS_DEPTH} levels of nesting, got more`, []);
    }
    if (!Array.isArray(value)) {
      this.object(value, path);
      return;
    }
    for (const [index, element] of value.entries()) {
      path.push(index);
      this.#value(element, path);
      path.pop();
    }
  }

  #number(value: number, path: KeyPath): void {
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
  }
}
