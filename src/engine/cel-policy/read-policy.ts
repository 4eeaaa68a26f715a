import { isIdentifier } from '../../cel/index.ts';
import {
  dns1035LabelProblems,
  dnsSubdomainProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
} from '../../resources/index.ts';
import type { FieldProblems } from './field-problem.ts';
import { Fields } from './fields.ts';
import type { KeyOptions } from './fields.ts';
import { readLabelSelector } from './label-selector.ts';
import { readMatchResources } from './match-resources.ts';
import type { MatchResources } from './match-resources.ts';
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
const MANIFEST_KEYS = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

const FAILURE_POLICIES = ['Fail', 'Ignore'] as const;
const REINVOCATION_POLICIES = ['IfNeeded', 'Never'] as const;
const NOT_FOUND_ACTIONS = ['Deny', 'Allow'] as const;
const PATCH_TYPES = ['ApplyConfiguration', 'JSONPatch'] as const;
const ACTIONS = ['Audit', 'Deny', 'Warn'] as const;
/** API servers know the reason Unauthorized, but reject policies with it. Kubewarden's policies may use it. */
const MANIFEST_REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'] as const;
const SETTINGS_REASONS = [...MANIFEST_REASONS, 'Unauthorized'] as const;

const SETTINGS_HINTS = Object.fromEntries(
  MANIFEST_KEYS.map((key) => [key, 'settings are what a policy has below "spec": write that at the top']),
);

/** Parsed settings of `builtin:cel`: the spec of a policy of either kind, and its parameters. */
export interface PolicySettings {
  readonly spec: PolicySpec;
  readonly paramRef: ParamRef | undefined;
}

/** Parses settings. Mistakes are added to `problems`; the result must not be used then. */
export function readSettings(json: unknown, problems: FieldProblems): PolicySettings {
  const fields = new Fields(json, '', SETTINGS_KEYS, problems, { hints: SETTINGS_HINTS });
  const isMutating = fields.has('mutations');
  for (const key of isMutating ? ['validations', 'auditAnnotations'] : ['reinvocationPolicy']) {
    if (fields.has(key)) {
      problems.forbidden(fields.at(key), `may ${isMutating ? 'not' : 'only'} be set in a policy with mutations`);
    }
  }
  const reader = new PolicyReader(fields, problems, { name: undefined, isMutating });
  const spec = reader.read();
  const paramRef = fields.has('paramRef')
    ? readParamRef(fields.value('paramRef'), fields.at('paramRef'), problems, { ignoreCase: true })
    : undefined;
  if (spec.paramKind !== undefined && paramRef === undefined) {
    problems.required('paramRef', 'must be specified when paramKind is: it says which parameters the policy gets');
  }
  if (spec.paramKind === undefined && paramRef !== undefined) {
    problems.required('paramKind', 'must be specified when paramRef is');
  }
  return { spec, paramRef };
}

/** Parses the manifest of a ValidatingAdmissionPolicy or MutatingAdmissionPolicy, like {@link readSettings}. */
export function readPolicy(json: unknown, problems: FieldProblems): PolicySpec {
  const manifest = new Fields(json, '', MANIFEST_KEYS, problems);
  const isMutating = manifest.text('kind') === 'MutatingAdmissionPolicy';
  const name = readName(manifest, problems);
  const spec = new Fields(manifest.value('spec') ?? {}, 'spec', isMutating ? MUTATING_KEYS : VALIDATING_KEYS, problems);
  return new PolicyReader(spec, problems, { name, isMutating }).read();
}

/** Parses the manifest of a binding. */
export function readBinding(json: unknown, problems: FieldProblems): BindingSpec {
  const manifest = new Fields(json, '', MANIFEST_KEYS, problems);
  const isMutating = manifest.text('kind') === 'MutatingAdmissionPolicyBinding';
  const name = readName(manifest, problems);
  const keys = ['policyName', 'paramRef', 'matchResources', ...(isMutating ? [] : ['validationActions'])];
  const fields = new Fields(manifest.value('spec') ?? {}, 'spec', keys, problems);
  const policyName = fields.text('policyName') ?? '';
  if (policyName === '') {
    problems.required(fields.at('policyName'));
  } else {
    for (const problem of dnsSubdomainProblems(policyName)) {
      problems.invalid(fields.at('policyName'), policyName, problem);
    }
  }
  return {
    kind: isMutating ? 'mutating' : 'validating',
    name,
    policyName,
    paramRef: fields.has('paramRef')
      ? readParamRef(fields.value('paramRef'), fields.at('paramRef'), problems, {})
      : undefined,
    matchResources: fields.has('matchResources')
      ? readMatchResources(fields.value('matchResources'), fields.at('matchResources'), problems, {
          isMutating,
          needsRules: false,
        })
      : undefined,
    validationActions: isMutating ? [] : readActions(fields, problems),
  };
}

function readName(manifest: Fields, problems: FieldProblems): string {
  const metadata = manifest.value('metadata');
  const name =
    typeof metadata === 'object' && metadata !== null && 'name' in metadata && typeof metadata.name === 'string'
      ? metadata.name
      : '';
  if (name === '') {
    problems.required('metadata.name', 'name or generateName is required');
  } else {
    for (const problem of dnsSubdomainProblems(name)) {
      problems.invalid('metadata.name', name, problem);
    }
  }
  return name;
}

function readActions(fields: Fields, problems: FieldProblems): ValidationAction[] {
  const path = fields.at('validationActions');
  const texts = fields.texts('validationActions');
  for (const [index, text] of texts.entries()) {
    if (!ACTIONS.some((action) => action === text)) {
      problems.unsupported(`${path}[${index}]`, text, ACTIONS);
    }
    if (texts.indexOf(text) < index) {
      problems.duplicate(`${path}[${index}]`, text);
    }
  }
  if (texts.includes('Deny') && texts.includes('Warn')) {
    problems.invalid(
      path,
      texts,
      'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
    );
  }
  if (texts.length === 0) {
    problems.required(path, 'at least one validation action is required');
  }
  return ACTIONS.filter((action) => texts.includes(action)).sort((a, b) => texts.indexOf(a) - texts.indexOf(b));
}

function readParamRef(value: unknown, path: string, problems: FieldProblems, options: KeyOptions): ParamRef {
  const keys = ['name', 'namespace', 'selector', 'parameterNotFoundAction'];
  const fields = new Fields(value, path, keys, problems, options);
  const name = fields.text('name') ?? '';
  const selector = fields.has('selector')
    ? readLabelSelector(fields.value('selector'), fields.at('selector'), problems)
    : undefined;
  for (const problem of name === '' ? [] : pathSegmentProblems(name)) {
    problems.invalid(fields.at('name'), name, problem);
  }
  if (name !== '' && selector !== undefined) {
    problems.forbidden(fields.at('name'), 'name and selector are mutually exclusive');
    problems.forbidden(fields.at('selector'), 'name and selector are mutually exclusive');
  }
  if (name === '' && selector === undefined) {
    problems.required(path, 'one of name or selector must be specified');
  }
  const parameterNotFoundAction = fields.oneOf('parameterNotFoundAction', NOT_FOUND_ACTIONS, 'Deny');
  if ((fields.text('parameterNotFoundAction') ?? '') === '') {
    problems.required(fields.at('parameterNotFoundAction'));
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
  readonly #fields: Fields;
  readonly #problems: FieldProblems;
  readonly #name: string | undefined;
  readonly #isMutating: boolean;

  constructor(
    fields: Fields,
    problems: FieldProblems,
    policy: { readonly name: string | undefined; readonly isMutating: boolean },
  ) {
    this.#fields = fields;
    this.#problems = problems;
    this.#name = policy.name;
    this.#isMutating = policy.isMutating;
  }

  read(): PolicySpec {
    const fields = this.#fields;
    const failurePolicy = fields.oneOf('failurePolicy', FAILURE_POLICIES, 'Fail');
    const paramKind = fields.has('paramKind') ? this.#paramKind() : undefined;
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
      this.#problems.required(this.#fields.at('reinvocationPolicy'));
    }
    return this.#fields.oneOf('reinvocationPolicy', REINVOCATION_POLICIES, 'Never');
  }

  #paramKind(): ParamKind {
    const problems = this.#problems;
    const path = this.#fields.at('paramKind');
    const options = { ignoreCase: this.#isSettings };
    const fields = new Fields(this.#fields.value('paramKind'), path, ['apiVersion', 'kind'], problems, options);
    const apiVersion = fields.text('apiVersion') ?? '';
    const kind = fields.text('kind') ?? '';
    if (apiVersion === '') {
      problems.required(fields.at('apiVersion'));
    } else {
      checkApiVersion(apiVersion, fields.at('apiVersion'), problems);
    }
    const mistakes = kind === '' ? [] : dns1035LabelProblems(kind.toLowerCase());
    if (kind === '') {
      problems.required(fields.at('kind'));
    } else if (mistakes.length > 0) {
      const detail = `may have mixed case, but should otherwise match: ${mistakes.join(',')}`;
      problems.invalid(fields.at('kind'), kind, detail);
    }
    return { apiVersion, kind };
  }

  #matchConstraints(): MatchResources | undefined {
    const value = this.#fields.value('matchConstraints');
    const path = this.#fields.at('matchConstraints');
    if (value === undefined) {
      if (!this.#isSettings) {
        this.#problems.required(path);
      }
      return undefined;
    }
    const options = { isMutating: this.#isMutating, needsRules: !this.#isSettings };
    return readMatchResources(value, path, this.#problems, options);
  }

  #matchConditions(): NamedExpression[] {
    const problems = this.#problems;
    const conditions = this.#fields.list('matchConditions');
    if (conditions.length > MAX_MATCH_CONDITIONS) {
      problems.tooMany(this.#fields.at('matchConditions'), conditions.length, MAX_MATCH_CONDITIONS);
    }
    const names = new Set<string>();
    return conditions.map(([value, path]) => {
      const fields = new Fields(value, path, ['name', 'expression'], problems);
      const expression = fields.text('expression') ?? '';
      if (trimSpace(expression) === '') {
        problems.required(fields.at('expression'));
      }
      const name = fields.text('name') ?? '';
      if (name === '') {
        problems.required(fields.at('name'));
      }
      for (const problem of name === '' ? [] : qualifiedNameProblems(name)) {
        problems.invalid(fields.at('name'), name, problem);
      }
      if (names.has(name)) {
        problems.duplicate(fields.at('name'), name);
      }
      names.add(name === '' ? path : name);
      return { name, expression };
    });
  }

  #variables(): NamedExpression[] {
    const problems = this.#problems;
    return this.#fields.list('variables').map(([value, path]) => {
      const fields = new Fields(value, path, ['name', 'expression'], problems);
      const name = fields.text('name') ?? '';
      if (trimSpace(name) === '') {
        problems.required(fields.at('name'), 'name is not specified');
      } else if (!isIdentifier(name)) {
        problems.invalid(fields.at('name'), name, 'must be a valid CEL identifier');
      }
      const expression = fields.text('expression') ?? '';
      if (trimSpace(expression) === '') {
        problems.required(fields.at('expression'), 'expression is not specified');
      }
      return { name, expression };
    });
  }

  #validations(): ValidationSpec[] {
    const fields = this.#fields;
    if (fields.list('validations').length === 0 && fields.list('auditAnnotations').length === 0) {
      const detail = 'validations or auditAnnotations must contain at least one item';
      this.#problems.required(fields.at('validations'), this.#isSettings ? `${detail}, or mutations` : detail);
      if (!this.#isSettings) {
        this.#problems.required(fields.at('auditAnnotations'), detail);
      }
    }
    return fields.list('validations').map(([value, path]) => this.#validation(value, path));
  }

  #validation(value: unknown, path: string): ValidationSpec {
    const problems = this.#problems;
    const fields = new Fields(value, path, ['expression', 'message', 'messageExpression', 'reason'], problems);
    const expression = fields.text('expression') ?? '';
    const message = fields.text('message') ?? '';
    const messageExpression = fields.text('messageExpression') ?? '';
    if (trimSpace(expression) === '') {
      problems.required(fields.at('expression'), 'expression is not specified');
    }
    if (messageExpression !== '' && trimSpace(messageExpression) === '') {
      problems.invalid(fields.at('messageExpression'), messageExpression, 'must be non-empty if specified');
    }
    const trimmed = trimSpace(message);
    if (message !== '' && trimmed === '') {
      problems.invalid(fields.at('message'), message, 'must be non-empty if specified');
    } else if (/[\n\r]/u.test(trimmed)) {
      problems.invalid(fields.at('message'), message, 'must not contain line breaks');
    }
    const reasons: readonly Reason[] = this.#isSettings ? SETTINGS_REASONS : MANIFEST_REASONS;
    return { expression, message, messageExpression, reason: fields.oneOf('reason', reasons, 'Invalid') };
  }

  #auditAnnotations(): AuditAnnotationSpec[] {
    const problems = this.#problems;
    const annotations = this.#fields.list('auditAnnotations');
    if (annotations.length > MAX_AUDIT_ANNOTATIONS) {
      const detail = `must not have more than ${MAX_AUDIT_ANNOTATIONS} auditAnnotations`;
      problems.add(this.#fields.at('auditAnnotations'), `Invalid value: ${detail}`);
    }
    const keys = new Set<string>();
    return annotations.map(([value, path]) => {
      const fields = new Fields(value, path, ['key', 'valueExpression'], problems);
      const key = fields.text('key') ?? '';
      // The full key, which includes the policy's name.
      const full = `${this.#name ?? 'policy'}/${key}`;
      for (const problem of qualifiedNameProblems(full)) {
        problems.invalid(fields.at('key'), full, problem);
      }
      const valueExpression = fields.text('valueExpression') ?? '';
      const trimmed = trimSpace(valueExpression);
      if (trimmed === '') {
        problems.required(fields.at('valueExpression'), 'valueExpression is not specified');
      } else if (Buffer.byteLength(trimmed) > MAX_VALUE_EXPRESSION_BYTES) {
        const detail = `must not exceed ${MAX_VALUE_EXPRESSION_BYTES} bytes in length`;
        problems.required(fields.at('valueExpression'), detail);
      }
      if (keys.has(key)) {
        problems.duplicate(fields.at('key'), key);
      }
      keys.add(key);
      return { key, valueExpression };
    });
  }

  #mutations(): MutationSpec[] {
    const mutations = this.#fields.list('mutations');
    if (mutations.length === 0) {
      this.#problems.required(this.#fields.at('mutations'), 'mutations must contain at least one item');
    }
    return mutations.map(([value, path]) => this.#mutation(value, path));
  }

  #mutation(value: unknown, path: string): MutationSpec {
    const problems = this.#problems;
    const fields = new Fields(value, path, ['patchType', 'jsonPatch', 'applyConfiguration'], problems);
    const text = fields.text('patchType') ?? '';
    const patchType = PATCH_TYPES.find((one) => one === text);
    if (patchType === undefined) {
      if (text === '') {
        problems.required(fields.at('patchType'));
      } else {
        problems.unsupported(fields.at('patchType'), text, PATCH_TYPES);
      }
      return { patchType: 'JSONPatch', expression: '' };
    }
    const key = fieldOfPatch(patchType);
    const other = patchType === 'JSONPatch' ? 'applyConfiguration' : 'jsonPatch';
    let expression = '';
    if (fields.has(key)) {
      const patch = new Fields(fields.value(key), fields.at(key), ['expression'], problems);
      expression = patch.text('expression') ?? '';
      if (trimSpace(expression) === '') {
        problems.required(patch.at('expression'));
      }
    } else {
      problems.required(fields.at(key), `must be specified when patchType is ${patchType}`);
    }
    if (fields.has(other)) {
      problems.invalid(fields.at(other), `{${other}}`, `must not be specified when patchType is ${patchType}`);
    }
    return { patchType, expression };
  }
}

/** The field that contains the expression of a mutation. */
export function fieldOfPatch(patchType: PatchType): 'jsonPatch' | 'applyConfiguration' {
  return patchType === 'JSONPatch' ? 'jsonPatch' : 'applyConfiguration';
}

function checkApiVersion(apiVersion: string, path: string, problems: FieldProblems): void {
  const parts = apiVersion === '/' ? ['', ''] : apiVersion.split('/');
  if (parts.length > 2) {
    problems.invalid(path, apiVersion, `unexpected GroupVersion string: ${apiVersion}`);
    return;
  }
  const [version = '', group = ''] = parts.toReversed();
  const groupProblems = group === '' ? [] : dnsSubdomainProblems(group);
  if (groupProblems.length > 0) {
    problems.invalid(path, group, groupProblems.join(','));
  }
  const versionProblems = version === '' ? [] : dns1035LabelProblems(version);
  if (version === '') {
    problems.invalid(path, apiVersion, 'version must be specified');
  } else if (versionProblems.length > 0) {
    problems.invalid(path, version, versionProblems.join(','));
  }
}
