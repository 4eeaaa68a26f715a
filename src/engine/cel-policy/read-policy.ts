import { isIdentifier } from '../../cel/index.ts';
import {
  duplicate,
  forbidden,
  invalid,
  notSupported,
  required,
  textOf,
  tooMany,
  valueAt,
} from '../../resources/index.ts';
import {
  dns1035LabelProblems,
  dnsLabelProblems,
  dnsSubdomainProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
} from '../../names/index.ts';
import { FieldReader } from '../values/field-reader.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject } from '../values/json-text.ts';
import { readChoice, readFields } from '../values/field-problem.ts';
import type { FieldProblem } from '../values/field-problem.ts';
import { readLabelSelector } from './label-selector.ts';
import { readMatchResources } from './match-resources.ts';
import type { MatchResources } from './match-resources.ts';
import { isKnownClusterKind } from './sources.ts';
import type { ParamKind } from './sources.ts';
import { trimSpace } from './go-space.ts';
import { MAX_AUDIT_ANNOTATIONS, MAX_MATCH_CONDITIONS, MAX_VALUE_EXPRESSION_BYTES } from './policy-spec.ts';
import type {
  AuditAnnotationSpec,
  BindingSpec,
  MutationSpec,
  NamedExpression,
  ParamRef,
  PatchType,
  PolicySpec,
  Reason,
  ValidationAction,
  ValidationSpec,
} from './policy-spec.ts';

const COMMON_KEYS = ['failurePolicy', 'matchConstraints', 'matchConditions', 'paramKind', 'variables'];
const VALIDATING_KEYS = [...COMMON_KEYS, 'validations', 'auditAnnotations'];
const MUTATING_KEYS = [...COMMON_KEYS, 'mutations', 'reinvocationPolicy'];
const SETTINGS_KEYS = [...new Set([...VALIDATING_KEYS, ...MUTATING_KEYS, 'paramRef'])];
const PARAM_REF_KEYS = ['name', 'namespace', 'selector', 'parameterNotFoundAction'];
const MANIFEST_KEYS = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

const FAILURE_POLICIES = ['Fail', 'Ignore'] as const;
const REINVOCATION_POLICIES = ['IfNeeded', 'Never'] as const;
const NOT_FOUND_ACTIONS = ['Deny', 'Allow'] as const;
const PATCH_TYPES = ['ApplyConfiguration', 'JSONPatch'] as const;
const ACTIONS = ['Audit', 'Deny', 'Warn'] as const;
/** API servers know the reason Unauthorized, but reject policies with it. Kubewarden's policies may use it. */
const MANIFEST_REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'] as const;
const SETTINGS_REASONS = [...MANIFEST_REASONS, 'Unauthorized'] as const;

const SETTINGS_HINTS = new Map(
  MANIFEST_KEYS.map((key) => [key, 'settings are what a policy has below "spec": write that at the top']),
);

/** Parsed settings of `builtin:cel`: the spec of a policy of either kind, and its parameters. */
export interface PolicySettings {
  readonly spec: PolicySpec;
  readonly paramRef: ParamRef | undefined;
}

/** Parses settings. Mistakes are added to `problems`; the result must not be used then. */
export function readSettings(json: unknown, problems: FieldProblem[]): PolicySettings {
  const fields = readFields(isJsonObject(json) ? withCamelKeys(json) : json, problems);
  fields.knownKeys(SETTINGS_KEYS, { hints: SETTINGS_HINTS });
  const isMutating = fields.has('mutations');
  for (const key of isMutating ? ['validations', 'auditAnnotations'] : ['reinvocationPolicy']) {
    if (fields.has(key)) {
      problems.push(forbidden(fields.at(key), `may ${isMutating ? 'not' : 'only'} be set in a policy with mutations`));
    }
  }
  const reader = new PolicyReader(fields, problems, { name: undefined, isMutating });
  const spec = reader.read();
  const paramRef = readParamRef(fields, problems);
  if (spec.paramKind !== undefined && paramRef === undefined) {
    problems.push(
      required('paramRef', 'must be specified when paramKind is: it says which parameters the policy gets'),
    );
  }
  if (spec.paramKind === undefined && paramRef !== undefined) {
    problems.push(required('paramKind', 'must be specified when paramRef is'));
  }
  if (spec.paramKind !== undefined && isKnownClusterKind(spec.paramKind) && paramRef?.namespace !== undefined) {
    problems.push(forbidden('paramRef.namespace', 'must not be provided for a cluster-scoped `paramKind`'));
  }
  // No namespace has such a name: no parameter would be found, and every request denied.
  for (const problem of paramRef?.namespace === undefined ? [] : dnsLabelProblems(paramRef.namespace)) {
    problems.push(invalid('paramRef.namespace', paramRef?.namespace, problem));
  }
  return { spec, paramRef };
}

/** Parses the manifest of a ValidatingAdmissionPolicy or MutatingAdmissionPolicy, like {@link readSettings}. */
export function readPolicy(json: unknown, problems: FieldProblem[]): PolicySpec {
  const manifest = readFields(json, problems);
  manifest.knownKeys(MANIFEST_KEYS);
  const isMutating = manifest.text('kind') === 'MutatingAdmissionPolicy';
  const name = readName(manifest, problems);
  const spec = readSpec(manifest, isMutating ? MUTATING_KEYS : VALIDATING_KEYS);
  return new PolicyReader(spec, problems, { name, isMutating }).read();
}

/** Parses the manifest of a binding. */
export function readBinding(json: unknown, problems: FieldProblem[]): BindingSpec {
  const manifest = readFields(json, problems);
  manifest.knownKeys(MANIFEST_KEYS);
  const isMutating = manifest.text('kind') === 'MutatingAdmissionPolicyBinding';
  const name = readName(manifest, problems);
  const keys = ['policyName', 'paramRef', 'matchResources', ...(isMutating ? [] : ['validationActions'])];
  const fields = readSpec(manifest, keys);
  const policyName = fields.text('policyName') ?? '';
  if (policyName === '') {
    problems.push(required(fields.at('policyName')));
  } else {
    for (const problem of dnsSubdomainProblems(policyName)) {
      problems.push(invalid(fields.at('policyName'), policyName, problem));
    }
  }
  const matchResources = fields.inside('matchResources');
  return {
    kind: isMutating ? 'mutating' : 'validating',
    name,
    policyName,
    paramRef: readParamRef(fields, problems),
    matchResources: matchResources && readMatchResources(matchResources, problems, { isMutating, needsRules: false }),
    validationActions: isMutating ? [] : readActions(fields, problems),
  };
}

/** `APIVersion` to `apiVersion` in `paramKind` and `paramRef`: Kubewarden's settings accept both. */
export function withCamelKeys(settings: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => {
      return [key, (key === 'paramKind' || key === 'paramRef') && isJsonObject(value) ? camelKeys(value) : value];
    }),
  );
}

function camelKeys(object: JsonObject): JsonObject {
  const known = ['apiVersion', 'kind', ...PARAM_REF_KEYS];
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => [
      known.find((one) => one.toLowerCase() === key.toLowerCase()) ?? key,
      value,
    ]),
  );
}

function readSpec(manifest: FieldReader, keys: readonly string[]): FieldReader {
  const spec = manifest.inside('spec') ?? new FieldReader({}, manifest.report, ['spec']);
  spec.knownKeys(keys);
  return spec;
}

function readName(manifest: FieldReader, problems: FieldProblem[]): string {
  const metadata = manifest.value('metadata');
  const name = textOf(valueAt(metadata, 'name'));
  if (name === '') {
    problems.push(required('metadata.name', 'name or generateName is required'));
  } else {
    for (const problem of dnsSubdomainProblems(name)) {
      problems.push(invalid('metadata.name', name, problem));
    }
  }
  return name;
}

function readActions(fields: FieldReader, problems: FieldProblem[]): ValidationAction[] {
  const path = fields.at('validationActions');
  const texts = fields.texts('validationActions');
  for (const [index, text] of texts.entries()) {
    if (!ACTIONS.some((action) => action === text)) {
      problems.push(notSupported(`${path}[${index}]`, text, ACTIONS));
    }
    if (texts.indexOf(text) < index) {
      problems.push(duplicate(`${path}[${index}]`, text));
    }
  }
  if (texts.includes('Deny') && texts.includes('Warn')) {
    problems.push(
      invalid(
        path,
        texts,
        'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
      ),
    );
  }
  if (texts.length === 0) {
    problems.push(required(path, `at least one validation action is required: ${oneOf(ACTIONS)}`));
  }
  return ACTIONS.filter((action) => texts.includes(action)).sort((a, b) => texts.indexOf(a) - texts.indexOf(b));
}

function readParamRef(owner: FieldReader, problems: FieldProblem[]): ParamRef | undefined {
  const fields = owner.inside('paramRef');
  if (fields === undefined) {
    return undefined;
  }
  fields.knownKeys(PARAM_REF_KEYS);
  const name = fields.text('name') ?? '';
  const selector = readLabelSelector(fields, 'selector', problems);
  for (const problem of name === '' ? [] : pathSegmentProblems(name)) {
    problems.push(invalid(fields.at('name'), name, problem));
  }
  if (name !== '' && selector !== undefined) {
    problems.push(forbidden(fields.at('name'), 'name and selector are mutually exclusive'));
    problems.push(forbidden(fields.at('selector'), 'name and selector are mutually exclusive'));
  }
  if (name === '' && selector === undefined) {
    problems.push(required(owner.at('paramRef'), 'one of name or selector must be specified'));
  }
  const parameterNotFoundAction = readChoice(fields, 'parameterNotFoundAction', NOT_FOUND_ACTIONS, 'Deny', problems);
  if ((fields.text('parameterNotFoundAction') ?? '') === '') {
    problems.push(required(fields.at('parameterNotFoundAction'), oneOf(NOT_FOUND_ACTIONS)));
  }
  const namespace = fields.text('namespace') ?? '';
  return {
    name: name === '' ? undefined : name,
    namespace: namespace === '' ? undefined : namespace,
    selector,
    parameterNotFoundAction,
  };
}

/** Reads the spec of a policy. Fields are read in the order of an API server's error messages. */
class PolicyReader {
  readonly #fields: FieldReader;
  readonly #problems: FieldProblem[];
  readonly #name: string | undefined;
  readonly #isMutating: boolean;

  constructor(
    fields: FieldReader,
    problems: FieldProblem[],
    policy: { readonly name: string | undefined; readonly isMutating: boolean },
  ) {
    this.#fields = fields;
    this.#problems = problems;
    this.#name = policy.name;
    this.#isMutating = policy.isMutating;
  }

  read(): PolicySpec {
    const fields = this.#fields;
    const failurePolicy = readChoice(fields, 'failurePolicy', FAILURE_POLICIES, 'Fail', this.#problems);
    const paramKind = this.#paramKind();
    const matchConstraints = this.#matchConstraints();
    const matchConditions = this.#matchConditions();
    const variables = this.#variables();
    const validations = this.#isMutating ? [] : this.#validations();
    const auditAnnotations = this.#isMutating ? [] : this.#auditAnnotations();
    const mutations = this.#isMutating ? this.#mutations() : [];
    return {
      kind: this.#isMutating ? 'mutating' : 'validating',
      name: this.#name,
      failurePolicy,
      paramKind,
      matchConstraints,
      matchConditions,
      variables,
      validations,
      auditAnnotations,
      mutations,
      reinvocationPolicy: this.#reinvocationPolicy(),
    };
  }

  get #isSettings(): boolean {
    return this.#name === undefined;
  }

  #reinvocationPolicy(): PolicySpec['reinvocationPolicy'] {
    if (!this.#isMutating) {
      return 'Never';
    }
    if (!this.#isSettings && (this.#fields.text('reinvocationPolicy') ?? '') === '') {
      this.#problems.push(required(this.#fields.at('reinvocationPolicy'), oneOf(REINVOCATION_POLICIES)));
    }
    return readChoice(this.#fields, 'reinvocationPolicy', REINVOCATION_POLICIES, 'Never', this.#problems);
  }

  #paramKind(): ParamKind | undefined {
    const problems = this.#problems;
    const fields = this.#fields.inside('paramKind');
    if (fields === undefined) {
      return undefined;
    }
    fields.knownKeys(['apiVersion', 'kind']);
    const apiVersion = fields.text('apiVersion') ?? '';
    const kind = fields.text('kind') ?? '';
    if (apiVersion === '') {
      problems.push(required(fields.at('apiVersion')));
    } else {
      checkApiVersion(apiVersion, fields.at('apiVersion'), problems);
    }
    const mistakes = kind === '' ? [] : dns1035LabelProblems(kind.toLowerCase());
    if (kind === '') {
      problems.push(required(fields.at('kind')));
    } else if (mistakes.length > 0) {
      const detail = `may have mixed case, but should otherwise match: ${mistakes.join(',')}`;
      problems.push(invalid(fields.at('kind'), kind, detail));
    }
    return { apiVersion, kind };
  }

  #matchConstraints(): MatchResources | undefined {
    const fields = this.#fields.inside('matchConstraints');
    if (fields === undefined) {
      if (!this.#isSettings && !this.#fields.has('matchConstraints')) {
        this.#problems.push(required(this.#fields.at('matchConstraints')));
      }
      return undefined;
    }
    const options = { isMutating: this.#isMutating, needsRules: !this.#isSettings };
    return readMatchResources(fields, this.#problems, options);
  }

  #matchConditions(): NamedExpression[] {
    const problems = this.#problems;
    const conditions = this.#fields.each('matchConditions');
    if (conditions.length > MAX_MATCH_CONDITIONS) {
      problems.push(tooMany(this.#fields.at('matchConditions'), conditions.length, MAX_MATCH_CONDITIONS));
    }
    const names = new Set<string>();
    return conditions.map((fields) => {
      fields.knownKeys(['name', 'expression']);
      const expression = fields.text('expression') ?? '';
      if (trimSpace(expression) === '') {
        problems.push(required(fields.at('expression')));
      }
      const name = fields.text('name') ?? '';
      if (name === '') {
        problems.push(required(fields.at('name')));
      }
      for (const problem of name === '' ? [] : qualifiedNameProblems(name)) {
        problems.push(invalid(fields.at('name'), name, problem));
      }
      if (names.has(name)) {
        problems.push(duplicate(fields.at('name'), name));
      }
      if (name !== '') {
        names.add(name);
      }
      return { name, expression };
    });
  }

  #variables(): NamedExpression[] {
    const problems = this.#problems;
    return this.#fields.each('variables').map((fields) => {
      fields.knownKeys(['name', 'expression']);
      const name = fields.text('name') ?? '';
      if (trimSpace(name) === '') {
        problems.push(required(fields.at('name'), 'name is not specified'));
      } else if (!isIdentifier(name)) {
        problems.push(invalid(fields.at('name'), name, 'must be a valid CEL identifier'));
      }
      const expression = fields.text('expression') ?? '';
      if (trimSpace(expression) === '') {
        problems.push(required(fields.at('expression'), 'expression is not specified'));
      }
      return { name, expression };
    });
  }

  #validations(): ValidationSpec[] {
    const fields = this.#fields;
    const validations = fields.each('validations');
    if (validations.length === 0 && (fields.list('auditAnnotations') ?? []).length === 0) {
      const detail = 'validations or auditAnnotations must contain at least one item';
      this.#problems.push(required(fields.at('validations'), this.#isSettings ? `${detail}, or mutations` : detail));
      if (!this.#isSettings) {
        this.#problems.push(required(fields.at('auditAnnotations'), detail));
      }
    }
    return validations.map((validation) => this.#validation(validation));
  }

  #validation(fields: FieldReader): ValidationSpec {
    const problems = this.#problems;
    fields.knownKeys(['expression', 'message', 'messageExpression', 'reason']);
    const expression = fields.text('expression') ?? '';
    const message = fields.text('message') ?? '';
    const messageExpression = fields.text('messageExpression') ?? '';
    if (trimSpace(expression) === '') {
      problems.push(required(fields.at('expression'), 'expression is not specified'));
    }
    if (messageExpression !== '' && trimSpace(messageExpression) === '') {
      problems.push(invalid(fields.at('messageExpression'), messageExpression, 'must be non-empty if specified'));
    }
    const trimmed = trimSpace(message);
    if (message !== '' && trimmed === '') {
      problems.push(invalid(fields.at('message'), message, 'must be non-empty if specified'));
    } else if (/[\n\r]/u.test(trimmed)) {
      problems.push(invalid(fields.at('message'), message, 'must not contain line breaks'));
    }
    const reasons: readonly Reason[] = this.#isSettings ? SETTINGS_REASONS : MANIFEST_REASONS;
    return {
      expression,
      message,
      messageExpression,
      reason: readChoice(fields, 'reason', reasons, 'Invalid', problems),
    };
  }

  #auditAnnotations(): AuditAnnotationSpec[] {
    const problems = this.#problems;
    const annotations = this.#fields.each('auditAnnotations');
    if (annotations.length > MAX_AUDIT_ANNOTATIONS) {
      const detail = `must not have more than ${MAX_AUDIT_ANNOTATIONS} auditAnnotations`;
      problems.push({ field: this.#fields.at('auditAnnotations'), message: `Invalid value: ${detail}` });
    }
    const keys = new Set<string>();
    return annotations.map((fields) => {
      fields.knownKeys(['key', 'valueExpression']);
      const key = fields.text('key') ?? '';
      // The full key, which includes the policy's name.
      const full = `${this.#name ?? 'policy'}/${key}`;
      for (const problem of qualifiedNameProblems(full)) {
        problems.push(invalid(fields.at('key'), full, problem));
      }
      const valueExpression = fields.text('valueExpression') ?? '';
      const trimmed = trimSpace(valueExpression);
      if (trimmed === '') {
        problems.push(required(fields.at('valueExpression'), 'valueExpression is not specified'));
      } else if (Buffer.byteLength(trimmed) > MAX_VALUE_EXPRESSION_BYTES) {
        const detail = `must not exceed ${MAX_VALUE_EXPRESSION_BYTES} bytes in length`;
        problems.push(required(fields.at('valueExpression'), detail));
      }
      if (keys.has(key)) {
        problems.push(duplicate(fields.at('key'), key));
      }
      keys.add(key);
      return { key, valueExpression };
    });
  }

  #mutations(): MutationSpec[] {
    const mutations = this.#fields.each('mutations');
    if (mutations.length === 0) {
      this.#problems.push(required(this.#fields.at('mutations'), 'mutations must contain at least one item'));
    }
    return mutations.map((mutation) => this.#mutation(mutation));
  }

  #mutation(fields: FieldReader): MutationSpec {
    const problems = this.#problems;
    fields.knownKeys(['patchType', 'jsonPatch', 'applyConfiguration']);
    const text = fields.text('patchType') ?? '';
    const patchType = PATCH_TYPES.find((one) => one === text);
    if (patchType === undefined) {
      if (text === '') {
        problems.push(required(fields.at('patchType'), oneOf(PATCH_TYPES)));
      } else {
        problems.push(notSupported(fields.at('patchType'), text, PATCH_TYPES));
      }
      return { patchType: 'JSONPatch', expression: '' };
    }
    const key = fieldOfPatch(patchType);
    const other = patchType === 'JSONPatch' ? 'applyConfiguration' : 'jsonPatch';
    const patch = fields.inside(key);
    const expression = patch?.text('expression') ?? '';
    patch?.knownKeys(['expression']);
    if (patch !== undefined && trimSpace(expression) === '') {
      problems.push(required(patch.at('expression')));
    }
    if (!fields.has(key)) {
      problems.push(required(fields.at(key), `must be specified when patchType is ${patchType}`));
    }
    if (fields.has(other)) {
      problems.push(invalid(fields.at(other), `{${other}}`, `must not be specified when patchType is ${patchType}`));
    }
    return { patchType, expression };
  }
}

/** API servers name the allowed values of a wrong field, but not of one that is missing. */
function oneOf(choices: readonly string[]): string {
  return `expected one of ${choices.map((choice) => `"${choice}"`).join(', ')}`;
}

/** The field that contains the expression of a mutation. */
export function fieldOfPatch(patchType: PatchType): 'jsonPatch' | 'applyConfiguration' {
  return patchType === 'JSONPatch' ? 'jsonPatch' : 'applyConfiguration';
}

function checkApiVersion(apiVersion: string, path: string, problems: FieldProblem[]): void {
  const parts = apiVersion === '/' ? ['', ''] : apiVersion.split('/');
  if (parts.length > 2) {
    problems.push(invalid(path, apiVersion, `unexpected GroupVersion string: ${apiVersion}`));
    return;
  }
  const [version = '', group = ''] = parts.toReversed();
  const groupProblems = group === '' ? [] : dnsSubdomainProblems(group);
  if (groupProblems.length > 0) {
    problems.push(invalid(path, group, groupProblems.join(',')));
  }
  const versionProblems = version === '' ? [] : dns1035LabelProblems(version);
  if (version === '') {
    problems.push(invalid(path, apiVersion, 'version must be specified'));
  } else if (versionProblems.length > 0) {
    problems.push(invalid(path, version, versionProblems.join(',')));
  }
}
