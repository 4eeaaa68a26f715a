// Reads a test file; see docs/testing.md.
import {
  describeValue,
  faultText,
  type KeyPath,
  FieldReader,
  isCapabilityPattern,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parsePolicies,
} from '../../../engine/index.ts';
import { YamlPositions } from '../../../values/yaml/index.ts';
import { errorText, exactJson, nearestKey, own, textOf, textPosition } from '../../../values/index.ts';
import type { ExecutionMode } from '../../../modules/index.ts';
import { parseDocument } from '../../document.ts';
import { CliError, EXIT } from '../../errors.ts';
import { kubernetesMinor } from '../../kubernetes-version.ts';
import { suiteName } from './discover.ts';
import { type Fault, plainJson } from '../../plain-json.ts';
import { OPERATIONS, type RequestDetails, type User } from '../../policy/admission-request.ts';
import type { Expectation, FileSource, Question, ValueSource, TestedPolicy, TestCase, TestSuite } from './suite.ts';
import { RESOURCE_NAME } from '../../policy/request-flags.ts';
import { patternMatcher, type TextMatcher } from './text-matcher.ts';

/** Most problems that are printed for one file. */
const MAX_SHOWN = 20;

const SUITE_KEYS = ['name', 'policy', 'defaults', 'cases'];
const DETAIL_KEYS = ['operation', 'user', 'namespace', 'dryRun', 'subresource', 'resource', 'scope', 'options'];
const DEFAULT_KEYS = [...DETAIL_KEYS, 'session'];
const QUESTION_KEYS = ['object', 'oldObject', 'request', 'raw', 'rawFile'];
const CASE_KEYS = ['name', 'settings', 'session', ...QUESTION_KEYS, ...DETAIL_KEYS, 'expect'];
const CHANGE_KEYS = ['object', 'objectContains', 'patch', 'unchanged'];
const VERDICT_KEYS = ['allowed', 'code', 'warnings', 'auditAnnotations', ...CHANGE_KEYS];
const EXPECT_KEYS = ['settings', 'matched', 'message', ...VERDICT_KEYS];
const USER_KEYS = ['username', 'uid', 'groups', 'extra'];
const MATCHER_KEYS = ['equals', 'contains', 'matches'];
/** Each key means another kind of policy. */
const SUBJECT_KEYS = ['module', 'policies', 'policiesFile', 'manifests'];
const MANIFESTS_KEYS = ['manifests', 'name', 'mode', 'modules', 'hostCapabilities', 'kubernetesVersion'];
const MODES: Readonly<Record<string, ExecutionMode>> = {
  opa: 'opa',
  gatekeeper: 'gatekeeper',
  kubewarden: 'kubewarden-wapc',
  wasi: 'wasi',
};

/**
 * Reads the text of a test file. `file` is its name for messages.
 * @throws CliError with all problems, each with line, column and excerpt
 */
export function readSuite(text: string, file: string): TestSuite {
  const { value } = parseDocument(text, file, 'kubernetes-exact');
  const faults: Fault[] = [];
  const root = plainJson(value, faults);
  const positions = new YamlPositions(text);
  if (!isJsonObject(root)) {
    throw new CliError(`${file}: expected a mapping with "policy" and "cases", got ${describeValue(root)}`, {
      exitCode: EXIT.usage,
    });
  }
  if (typeof own(root, 'apiVersion') === 'string' && typeof own(root, 'kind') === 'string') {
    const hint = `To test policies on manifests: portcullis test -p POLICY ${file}`;
    throw new CliError(`${file} is a Kubernetes object, and no test file`, { exitCode: EXIT.usage, hint });
  }
  const reader = new SuiteReader(text, file, positions, faults);
  const suite = faults.length === 0 ? reader.suite(new FieldReader(root, (fault) => faults.push(fault))) : undefined;
  if (suite === undefined || faults.length > 0) {
    throw problems(text, file, positions, faults);
  }
  return suite;
}

function problems(text: string, file: string, positions: YamlPositions, faults: readonly Fault[]): CliError {
  const shown = faults
    .map((fault) => ({ ...fault, at: positions.offsetOf(fault.path) }))
    .sort((a, b) => a.at - b.at)
    .slice(0, MAX_SHOWN)
    .map((fault) => located(text, file, fault.at, faultText(fault)));
  const more = faults.length > MAX_SHOWN ? `\n… and ${faults.length - MAX_SHOWN} more` : '';
  return new CliError(shown.join('\n') + more, { exitCode: EXIT.usage });
}

/** A message with its position in a text, and the line there. */
export function located(text: string, file: string, at: number, message: string): string {
  const { line, column, excerpt } = textPosition(text, at);
  return `${file}:${line}:${column} ${message}\n${excerpt.replaceAll(/^/gm, '  ')}`;
}

class SuiteReader {
  readonly #text: string;
  readonly #file: string;
  readonly #positions: YamlPositions;
  readonly #faults: Fault[];

  constructor(text: string, file: string, positions: YamlPositions, faults: Fault[]) {
    this.#text = text;
    this.#file = file;
    this.#positions = positions;
    this.#faults = faults;
  }

  suite(fields: FieldReader): TestSuite | undefined {
    fields.knownKeys(SUITE_KEYS, { owner: 'a test file' });
    if (!fields.isWritten('policy')) {
      fields.faultHere('expected the key "policy", which is missing: name the policy under test');
    }
    const subject = this.#policy(fields);
    const defaults = fields.inside('defaults');
    defaults?.knownKeys(DEFAULT_KEYS, { owner: 'the defaults' });
    const details = defaults === undefined ? {} : readDetails(defaults);
    const session = defaults && this.#fileSource('session', defaults);
    if ((fields.list('cases') ?? []).length === 0) {
      fields.faultHere('expected "cases", a list of at least one case');
    }
    const cases = fields
      .each('cases')
      .map((entry) => this.#case(entry, details, session === undefined ? {} : { session }));
    this.#uniqueNames(fields, cases);
    const name = fields.someText('name') ?? suiteName(this.#file);
    const subjectAt = this.#positions.offsetOf(['policy']);
    return subject === undefined ? undefined : { name, file: this.#file, subject, subjectAt, cases };
  }

  #uniqueNames(fields: FieldReader, cases: readonly TestCase[]): void {
    const seen = new Set<string>();
    for (const [index, { name }] of cases.entries()) {
      if (seen.has(name) && name !== '') {
        fields.fault('cases', `two cases are named ${JSON.stringify(name)}: rename one`, index, 'name');
      }
      seen.add(name);
    }
  }

  /** A file with the policy, or a mapping that says more. */
  #policy(fields: FieldReader): TestedPolicy | undefined {
    if (typeof fields.value('policy') === 'string') {
      const source = this.#fileSource('policy', fields);
      return source === undefined ? undefined : { kind: 'manifests', sources: [source] };
    }
    const policy = fields.inside('policy');
    return policy === undefined ? undefined : this.#subject(policy);
  }

  #subject(fields: FieldReader): TestedPolicy | undefined {
    const kinds = SUBJECT_KEYS.filter((key) => fields.isWritten(key));
    const [kind] = kinds;
    if (kind === undefined || kinds.length > 1) {
      const odd = fields.keys.find((key) => nearestKey(key, SUBJECT_KEYS) !== undefined) ?? '';
      const nearest = kind === undefined ? nearestKey(odd, SUBJECT_KEYS) : undefined;
      const found = kind === undefined ? 'none of them' : kinds.join(' and ');
      const hint = nearest === undefined ? '' : `: did you mean "${nearest}" by "${odd}"?`;
      fields.faultHere(`policy: expected one of ${SUBJECT_KEYS.join(', ')}, got ${found}${hint}`);
      return undefined;
    }
    switch (kind) {
      case 'policiesFile':
        return this.#entryOfFile(fields);
      case 'manifests':
        return this.#manifests(fields);
      default:
        return this.#entry(fields);
    }
  }

  #entryOfFile(fields: FieldReader): TestedPolicy | undefined {
    fields.knownKeys(['policiesFile', 'id'], { owner: 'a policy of a policies file' });
    const file = this.#fileSource('policiesFile', fields);
    const id = fields.requiredText('id');
    return file === undefined ? undefined : { kind: 'entry', file, id };
  }

  #manifests(fields: FieldReader): TestedPolicy {
    fields.knownKeys(MANIFESTS_KEYS, { owner: 'a policy in manifests' });
    const version = fields.someText('kubernetesVersion');
    const kubernetesVersion = version === undefined ? undefined : kubernetesMinor(version);
    if (version !== undefined && kubernetesVersion === undefined) {
      fields.fault('kubernetesVersion', `expected a version such as "1.34", got ${describeValue(version)}`);
    }
    const list = fields.list('manifests') ?? [];
    if (list.length === 0) {
      fields.fault('manifests', 'expected a list of at least one file or manifest');
    }
    const sources = list.flatMap((_, index) => this.#listed(fields, 'manifests', index));
    return {
      kind: 'manifests',
      sources,
      ...defined({
        name: fields.someText('name'),
        mode: fields.oneOf('mode', ['protect', 'monitor']),
        modules: this.#moduleFiles(fields),
        hostCapabilities: readHostCapabilities(fields),
        kubernetesVersion,
      }),
    };
  }

  #moduleFiles(fields: FieldReader): Readonly<Record<string, FileSource>> | undefined {
    const modules = fields.inside('modules');
    return (
      modules &&
      Object.fromEntries(
        modules.keys.flatMap((reference) => {
          const file = this.#fileSource(reference, modules);
          return file === undefined ? [] : [[reference, file]];
        }),
      )
    );
  }

  #listed(fields: FieldReader, key: string, index: number): ValueSource[] {
    const value = fields.list(key)?.[index] ?? null;
    if (isJsonObject(value)) {
      return [{ value }];
    }
    if (typeof value === 'string' && value !== '') {
      return [{ path: value, at: this.#positions.offsetOf([...fields.path, key, index]) }];
    }
    fields.fault(key, `expected a mapping, or the path of a file, got ${describeValue(value)}`, index);
    return [];
  }

  #entry(fields: FieldReader): TestedPolicy {
    const mode = fields.isWritten('module')
      ? fields.oneOf('executionMode', ['kubewarden', 'opa', 'gatekeeper', 'wasi'])
      : undefined;
    const settings = fields.value('settings');
    const settingsFile = typeof settings === 'string' ? this.#fileSource('settings', fields) : undefined;
    const entry: JsonObject = {};
    for (const key of fields.keys) {
      const isOurs = (key === 'executionMode' && fields.isWritten('module')) || (key === 'settings' && settingsFile);
      if (!isOurs) {
        entry[key] = fields.written(key) ?? null;
      }
    }
    // Checked by the reader of policies files.
    const { problems: wrong } = parsePolicies(exactJson({ policy: entry }), this.#file);
    for (const { message, field } of wrong) {
      this.#faults.push({ message, path: [...fields.path, ...(field === '' ? [] : field.split('.'))] });
    }
    const executionMode = mode === undefined ? undefined : MODES[mode];
    return {
      kind: 'policy',
      entry,
      ...(settingsFile === undefined ? {} : { settingsFile }),
      ...(executionMode === undefined ? {} : { executionMode }),
    };
  }

  #case(fields: FieldReader, defaults: RequestDetails, inherited: Pick<TestCase, 'session'>): TestCase {
    fields.knownKeys(CASE_KEYS, { owner: 'a case' });
    const name = fields.requiredText('name');
    const at = this.#positions.offsetOf(fields.path);
    const { line, column } = textPosition(this.#text, at);
    const settings = this.#source('settings', fields);
    const session = this.#fileSource('session', fields);
    const question = this.#question(fields, defaults);
    return {
      name,
      line,
      column,
      at,
      ...inherited,
      ...(settings === undefined ? {} : { settings }),
      ...(session === undefined ? {} : { session }),
      question,
      expect: this.#expectation(fields, question),
    };
  }

  #question(fields: FieldReader, defaults: RequestDetails): Question {
    const ways = QUESTION_KEYS.filter((key) => fields.isWritten(key) && key !== 'oldObject');
    const needless = DETAIL_KEYS.filter((key) => fields.isWritten(key));
    const [way = fields.isWritten('oldObject') ? 'oldObject' : undefined] = ways;
    if (ways.length > 1 || (fields.isWritten('oldObject') && way !== 'object' && way !== 'oldObject')) {
      fields.faultHere('expected one of object and oldObject, request, raw, rawFile, got several');
    } else if (way !== 'object' && way !== 'oldObject' && needless.length > 0) {
      fields.faultHere(`${needless.join(', ')}: only used with object or oldObject`);
    }
    switch (way) {
      case undefined:
        return { kind: 'none' };
      case 'request': {
        const request = this.#source('request', fields);
        return request === undefined ? { kind: 'none' } : { kind: 'request', request };
      }
      case 'raw':
        return { kind: 'raw', request: { value: fields.written('raw') ?? null } };
      case 'rawFile': {
        const file = this.#fileSource('rawFile', fields);
        return file === undefined ? { kind: 'none' } : { kind: 'raw', request: file };
      }
      default: {
        const object = this.#source('object', fields);
        const oldObject = this.#source('oldObject', fields);
        const details = { ...defaults, ...readDetails(fields) };
        checkObjects(fields, details.operation);
        return {
          kind: 'objects',
          ...(object === undefined ? {} : { object }),
          ...(oldObject === undefined ? {} : { oldObject }),
          details,
        };
      }
    }
  }

  #expectation(owner: FieldReader, question: Question): Expectation {
    const fields = owner.inside('expect');
    if (fields === undefined) {
      if (!owner.isWritten('expect')) {
        owner.faultHere(
          'expected the key "expect", which is missing: state the expected response, such as {allowed: true}',
        );
      }
      return {};
    }
    fields.knownKeys(EXPECT_KEYS, { owner: 'an expectation' });
    checkExpectation(fields, question);
    const object = this.#expectedObject(fields);
    return defined({
      settings: fields.oneOf('settings', ['accepted', 'rejected']),
      matched: fields.boolean('matched'),
      allowed: fields.boolean('allowed'),
      message: fields.isWritten('message')
        ? this.#matcher(fields, 'message', fields.written('message') ?? null)
        : undefined,
      code: fields.integer('code'),
      warnings: fields
        .list('warnings')
        ?.flatMap((value, index) => this.#matcher(fields, 'warnings', value, index) ?? []),
      auditAnnotations: this.#annotations(fields),
      object,
      objectContains: fields.written('objectContains'),
      patch: fields.list('patch'),
      unchanged: fields.boolean('unchanged') === true ? (true as const) : undefined,
    });
  }

  #annotations(fields: FieldReader): Readonly<Record<string, TextMatcher>> | undefined {
    const annotations = fields.mapping('auditAnnotations');
    return (
      annotations &&
      Object.fromEntries(
        Object.entries(annotations).flatMap(([key, value]) => {
          const matcher = this.#matcher(fields, 'auditAnnotations', value, key);
          return matcher === undefined ? [] : [[key, matcher]];
        }),
      )
    );
  }

  #expectedObject(fields: FieldReader): ValueSource<JsonValue> | undefined {
    const value = fields.written('object');
    return typeof value === 'string' ? this.#fileSource('object', fields) : value === undefined ? undefined : { value };
  }

  #matcher(fields: FieldReader, key: string, value: JsonValue, ...below: KeyPath): TextMatcher | undefined {
    if (typeof value === 'string') {
      return { kind: 'equals', text: value };
    }
    if (Array.isArray(value) && value.length > 0) {
      const each = value.map((one, index) => this.#matcher(fields, key, one, ...below, index));
      return allOf(each.filter((one) => one !== undefined));
    }
    const kinds = isJsonObject(value) ? Object.entries(value) : [];
    const wrong = kinds.find(([kind, text]) => !MATCHER_KEYS.includes(kind) || typeof text !== 'string');
    if (kinds.length === 0 || wrong !== undefined) {
      const forms = 'a string, {contains: TEXT}, {matches: PATTERN}, or a list of these';
      const nearest =
        wrong === undefined || MATCHER_KEYS.includes(wrong[0]) ? undefined : nearestKey(wrong[0], MATCHER_KEYS);
      const hint = nearest === undefined ? '' : `: did you mean "${nearest}"?`;
      const found = isJsonObject(value) ? `the keys ${Object.keys(value).join(', ') || '{}'}` : describeValue(value);
      fields.fault(key, `expected ${forms}, got ${found}${hint}`, ...below);
      return undefined;
    }
    const each = kinds.map(([kind, text]) => this.#condition(fields, key, kind, textOf(text), below));
    return allOf(each.filter((one) => one !== undefined));
  }

  #condition(fields: FieldReader, key: string, kind: string, text: string, below: KeyPath): TextMatcher | undefined {
    if (kind !== 'matches') {
      return { kind: kind === 'contains' ? 'contains' : 'equals', text };
    }
    try {
      return patternMatcher(text);
    } catch (error) {
      fields.fault(
        key,
        `expected an RE2 pattern, got ${describeValue(text)}: ${errorText(error)}`,
        ...below,
        'matches',
      );
      return undefined;
    }
  }

  #source(key: string, fields: FieldReader): ValueSource | undefined {
    const value = fields.value(key);
    if (typeof value === 'string') {
      return this.#fileSource(key, fields);
    }
    if (value === undefined || isJsonObject(value)) {
      return value === undefined ? undefined : { value };
    }
    fields.fault(key, `expected a mapping, or the path of a file, got ${describeValue(value)}`);
    return undefined;
  }

  #fileSource(key: string, fields: FieldReader): { path: string; at: number } | undefined {
    const path = fields.someText(key);
    return path === undefined ? undefined : { path, at: this.#positions.offsetOf([...fields.path, key]) };
  }
}

function allOf(matchers: readonly TextMatcher[]): TextMatcher | undefined {
  return matchers.length > 1 ? { kind: 'all', matchers } : matchers[0];
}

function readDetails(fields: FieldReader): RequestDetails {
  const resource = fields.someText('resource');
  if (resource !== undefined && !RESOURCE_NAME.test(resource)) {
    const expected = 'expected the plural name of a resource such as widgets, or widgets.v1.example.com';
    fields.fault('resource', `${expected}, got ${describeValue(resource)}`);
  }
  return defined({
    operation: fields.oneOf('operation', OPERATIONS),
    user: readUser(fields),
    namespace: fields.someText('namespace'),
    dryRun: fields.boolean('dryRun'),
    subresource: fields.someText('subresource'),
    resource,
    scope: fields.oneOf('scope', ['Namespaced', 'Cluster']),
    options: fields.mapping('options'),
  });
}

function readHostCapabilities(fields: FieldReader): readonly string[] | undefined {
  const patterns = fields.list('hostCapabilities');
  if (patterns?.some((pattern) => typeof pattern !== 'string' || !isCapabilityPattern(pattern)) === true) {
    fields.fault('hostCapabilities', 'expected a list of host capabilities, such as net/* or oci/v1/verify');
  }
  return patterns as readonly string[] | undefined;
}

function readUser(fields: FieldReader): User | undefined {
  if (typeof fields.value('user') === 'string') {
    return { username: fields.someText('user') ?? '' };
  }
  const user = fields.inside('user');
  if (user === undefined) {
    return undefined;
  }
  user.knownKeys(USER_KEYS, { owner: 'a user' });
  const groups = user.list('groups');
  if (groups?.some((group) => typeof group !== 'string') === true) {
    user.fault('groups', 'expected a list of strings');
  }
  return {
    username: user.requiredText('username'),
    ...defined({
      uid: user.someText('uid'),
      groups: groups as readonly string[] | undefined,
      extra: user.mapping('extra'),
    }),
  };
}

/** Checks which objects an API server sends for the operation. */
function checkObjects(fields: FieldReader, operation: string | undefined): void {
  const [hasObject, hasOld] = [fields.isWritten('object'), fields.isWritten('oldObject')];
  if (operation === 'DELETE' && (hasObject || !hasOld)) {
    fields.faultHere('operation: DELETE has oldObject, the deleted one, and no object');
  } else if (operation === 'UPDATE' && (!hasObject || !hasOld)) {
    fields.faultHere('operation: UPDATE has object and oldObject');
  } else if ((operation === 'CREATE' || operation === 'CONNECT') && (!hasObject || hasOld)) {
    fields.faultHere(`operation: ${operation} has object, and no oldObject`);
  }
}

/** Refuses expectations that can never fail, or never be met. */
function checkExpectation(fields: FieldReader, { kind }: Question): void {
  const settings = fields.value('settings');
  const verdict = VERDICT_KEYS.filter((key) => fields.isWritten(key));
  const isUnmatched = fields.value('matched') === false;
  if (kind === 'none' && settings === undefined) {
    fields.faultHere('the case has no request: expected object, oldObject, request, raw or rawFile');
  } else if (settings === 'rejected' && (kind !== 'none' || verdict.length > 0)) {
    const odd = verdict.length > 0 ? `remove ${verdict.join(', ')}` : 'remove the request';
    fields.fault('settings', `rejected settings answer no request: ${odd}`);
  } else if (settings === 'accepted' && kind === 'none' && (verdict.length > 0 || fields.isWritten('message'))) {
    fields.fault('settings', `${[...verdict, 'message'].join(', ')}: only used with a request`);
  } else if (fields.isWritten('matched') && (kind === 'none' || kind === 'raw')) {
    fields.fault('matched', 'only used with an admission request');
  } else if (isUnmatched && verdict.length > 0) {
    fields.fault(
      'matched',
      `a policy that does not match a request is not asked about it: remove ${verdict.join(', ')}`,
    );
  } else if (kind !== 'none' && settings !== 'rejected' && !isUnmatched && fields.value('allowed') === undefined) {
    fields.faultHere('expected the key "allowed", which is missing: set it to true or false');
  }
  if (fields.isWritten('unchanged') && fields.written('unchanged') !== true) {
    fields.fault('unchanged', 'expected true; describe a change with patch, object or objectContains');
  } else if (fields.isWritten('unchanged') && CHANGE_KEYS.filter((key) => fields.isWritten(key)).length > 1) {
    fields.fault('unchanged', 'contradicts patch, object and objectContains: remove one of them');
  }
}

/** The object without undefined fields. */
function defined<Value extends object>(value: Value): { [Key in keyof Value]?: Exclude<Value[Key], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as {
    [Key in keyof Value]?: Exclude<Value[Key], undefined>;
  };
}
