import { BuiltinSettings, type KindSchema, type LintFinding } from '../../engine/index.ts';
import {
  type AdmissionPolicyObject,
  forbidden,
  invalid,
  isGroupSpec,
  isJsonObject,
  notSupported,
  policyId,
} from '../../resources/index.ts';
import { MAX_SUBDOMAIN_LENGTH } from '../../names/index.ts';
import { checkAuthorizerUse } from './authorizer-rules.ts';
import { hintAtBuiltin } from './builtin-hints.ts';
import { checkConstraints } from './constraint-rules.ts';
import type { Findings } from './findings.ts';
import { MatchConditionCompiler } from './match-conditions.ts';
import { checkModule } from './module-rules.ts';
import { checkNullReads } from './null-object-rules.ts';
import { checkParameters, checkSchemaOwner, completesSettings } from './parameter-rules.ts';
import { checkDeletions } from './deletion-rules.ts';
import { checkPodTemplates } from './pod-template-rules.ts';
import { checkRequestRules } from './request-rules.ts';
import { checkContextAwareKinds, checkNeeds, modulesOf, type SpecModule } from './rights-rules.ts';
import { checkRunnable } from './runnable-policy.ts';
import { checkSelector } from './selector-rules.ts';

/** Whether invalid settings of builtin modules are errors or warnings. */
export type SettingsStrictness = 'reject' | 'warn';

export interface PolicyRulesOptions {
  /** Base URL of `file://./…`: a folder, with a slash at the end. Default: none, such references are rejected. */
  readonly modulesUrl?: URL | undefined;
  /**
   * The hosts that a PolicyServer names for modules of namespaced policies; undefined if they are not known. Default: they are
   * never known.
   */
  readonly tenantHosts?: ((policyServer: string) => readonly string[] | undefined) | undefined;
  /**
   * The modules that a PolicyServer names for namespaced policies, besides builtin ones; undefined if they are not known.
   * Default: they are never known.
   */
  readonly tenantModules?: ((policyServer: string) => readonly string[] | undefined) | undefined;
  /**
   * Patterns of the host capabilities that a PolicyServer grants to namespaced policies; undefined if they are not known.
   * Default: they are never known.
   */
  readonly tenantCapabilities?: ((policyServer: string) => readonly string[] | undefined) | undefined;
  /** The finalizer of Kubewarden's controller on a PolicyServer; undefined if it has none. Default: it never has. */
  readonly kubewardenFinalizer?: ((policyServer: string) => string | undefined) | undefined;
  /** Kinds of CustomResourceDefinitions with their schemas. Default: none are known. */
  readonly customKinds?: readonly KindSchema[] | undefined;
  /** Default: reject. */
  readonly settingsCheck?: SettingsStrictness | undefined;
}

/** Ends the names of webhooks in Kubewarden, and is longer than our suffix. */
const WEBHOOK_SUFFIX = '.kubewarden.admission';
/** The longest id that can be the name of a webhook, a DNS subdomain, with either suffix. */
export const MAX_POLICY_ID_LENGTH = MAX_SUBDOMAIN_LENGTH - WEBHOOK_SUFFIX.length;

const SIDE_EFFECTS = ['None', 'NoneOnDryRun'];

/** Validates policies of all four kinds beyond their schemas. */
export class PolicyRules {
  readonly #modulesUrl: URL | undefined;
  readonly #tenantHosts: NonNullable<PolicyRulesOptions['tenantHosts']>;
  readonly #tenantModules: NonNullable<PolicyRulesOptions['tenantModules']>;
  readonly #tenantCapabilities: NonNullable<PolicyRulesOptions['tenantCapabilities']>;
  readonly #kubewardenFinalizer: NonNullable<PolicyRulesOptions['kubewardenFinalizer']>;
  readonly #settingsCheck: SettingsStrictness;
  readonly #customKinds: readonly KindSchema[];
  readonly #conditions = new MatchConditionCompiler();
  readonly #settings = new BuiltinSettings();

  constructor({
    modulesUrl,
    customKinds = [],
    tenantHosts = () => undefined,
    tenantModules = () => undefined,
    tenantCapabilities = () => undefined,
    kubewardenFinalizer = () => undefined,
    settingsCheck = 'reject',
  }: PolicyRulesOptions = {}) {
    this.#tenantCapabilities = tenantCapabilities;
    this.#modulesUrl = modulesUrl;
    this.#tenantHosts = tenantHosts;
    this.#tenantModules = tenantModules;
    this.#kubewardenFinalizer = kubewardenFinalizer;
    this.#customKinds = customKinds;
    this.#settingsCheck = settingsCheck;
  }

  /** Checks the name of a new policy, which becomes part of other names. */
  checkName(policy: AdmissionPolicyObject, findings: Findings): void {
    const id = policyId(policy);
    if (id.length > MAX_POLICY_ID_LENGTH) {
      const { name = '' } = policy.metadata;
      const detail = `the id of the policy, ${id.slice(0, id.length - name.length)}<name>, is the name of its webhook: expected at most ${MAX_POLICY_ID_LENGTH} characters, got ${id.length}. Shorten the name by ${id.length - MAX_POLICY_ID_LENGTH}`;
      findings.reject('id-too-long', invalid('metadata.name', name, detail));
    }
  }

  /** Checks a spec that is valid by the schema and has defaults. */
  checkSpec(policy: AdmissionPolicyObject, findings: Findings): void {
    const { spec } = policy;
    const { policyServer } = spec;
    const isNamespaced = policy.metadata.namespace !== undefined;
    checkRequestRules(spec.rules, isNamespaced, findings);
    const conditions = spec.matchConditions ?? [];
    const { reads, programs } = this.#conditions.check(conditions, isNamespaced, findings);
    const failurePolicy = spec.failurePolicy === 'Ignore' ? 'Ignore' : 'Fail';
    report(this.#settings.lintConditions(programs, failurePolicy), 'spec', findings);
    if (failurePolicy === 'Fail') {
      checkNullReads({ field: 'spec', reads, isDecisive: true }, spec.rules, findings);
    }
    checkPodTemplates(policy, findings);
    checkDeletions(policy, findings);
    checkSelector(spec.objectSelector, 'spec.objectSelector', findings);
    if ('namespaceSelector' in spec) {
      checkSelector(spec.namespaceSelector, 'spec.namespaceSelector', findings);
    }
    if (spec.sideEffects !== undefined && !SIDE_EFFECTS.includes(spec.sideEffects)) {
      findings.reject('side-effects', notSupported('spec.sideEffects', spec.sideEffects, SIDE_EFFECTS));
    }
    const scope = {
      isNamespaced,
      modulesUrl: this.#modulesUrl,
      tenantHosts: this.#tenantHosts(policyServer),
      tenantModules: this.#tenantModules(policyServer),
    };
    for (const use of modulesOf(spec)) {
      const builtin = checkModule(use.module, `${use.field}.module`, scope, findings);
      checkContextAwareKinds(use, findings);
      if (use.parameters !== undefined) {
        checkParameters(use.parameters, { field: use.field, isNamespaced, rules: spec.rules }, findings);
        checkSchemaOwner(use.field, { policyServer, finalizer: this.#kubewardenFinalizer(policyServer) }, findings);
      }
      if (builtin === undefined) {
        hintAtBuiltin(use, isNamespaced, this.#settings, findings);
      } else {
        const checked = this.#settings.check(builtin, use.settings ?? {});
        const { problems, needs, constraints, nullReads, lint } = checked;
        const customKinds = this.#customKinds;
        const context = { rules: spec.rules, customKinds, conditions: conditions.map(({ expression }) => expression) };
        report(lint(context), `${use.field}.settings`, findings);
        for (const problem of problems.filter(({ field }) => !isOverridden(field, use))) {
          this.#report(`${use.field}.settings`, problem, completesSettings(use.parameters), findings);
        }
        checkNeeds(use, needs, isNamespaced, findings);
        if (conditions.length === 0) {
          const failing = { field: `${use.field}.settings`, reads: nullReads, isDecisive: !isGroupSpec(spec) };
          checkNullReads(failing, spec.rules, findings);
        }
        if (constraints !== undefined) {
          checkConstraints(`${use.field}.settings`, constraints, spec, findings);
        }
        if (isNamespaced) {
          const capabilities = this.#tenantCapabilities(policyServer);
          checkAuthorizerUse(`${use.field}.settings`, needs, { policyServer, capabilities }, findings);
        }
      }
    }
    checkRunnable(policy, findings);
  }

  /** @param isIncomplete whether parameters may complete the settings */
  #report(
    at: string,
    { field, message }: { field: string; message: string },
    isIncomplete: boolean,
    findings: Findings,
  ): void {
    const place = field === '' ? at : `${at}.${field}`;
    if (this.#settingsCheck === 'warn' || isIncomplete) {
      findings.warn('settings', place, message);
    } else {
      findings.reject('settings', { reason: 'FieldValueInvalid', field: place, message });
    }
  }
}

/** @param root path of what contains the fields */
function report(lints: readonly LintFinding[], root: string, findings: Findings): void {
  for (const { code, field, message, isError, place } of lints) {
    const path = field === '' ? root : `${root}.${field}`;
    if (isError === true) {
      findings.reject(code, forbidden(path, message), place);
    } else {
      findings.warn(code, path, message, place);
    }
  }
}

/** Whether a problem is that a setting is missing which parameters give: `settings` alone are never used then. */
function isOverridden(field: string, { parameters, settings }: SpecModule): boolean {
  return (
    completesSettings(parameters) &&
    parameters?.overridable.includes(field) === true &&
    !(isJsonObject(settings) && Object.hasOwn(settings, field))
  );
}
