import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  isJsonObject,
  type JsonObject,
  type KubernetesObject,
  type MutableObject,
  own,
  OWN_KINDS,
  type OwnKind,
  POLICIES_GROUP,
  POLICY_EXCEPTIONS,
  POLICY_REVISIONS,
  POLICY_SERVERS,
  type PolicyException,
  type PolicyServerObject,
} from '../../resources/index.ts';
import { ObjectSchema } from '../../resources/validation/index.ts';
import { checkPolicyAnnotations, checkServerAnnotations } from './annotation-rules.ts';
import { warnOfFailedPin } from './pinned-revision.ts';
import type { ContributedKinds } from './contributed-kinds.ts';
import type { GuardedKinds } from './guarded-kinds.ts';
import { checkFixedFields } from './fixed-fields.ts';
import { checkException } from './exception-rules.ts';
import { Findings } from './findings.ts';
import { MatchConditionCompiler } from './match-conditions.ts';
import { type AuthorRightsNeeded, neededRights } from './needed-rights.ts';
import { objectAt, type OwnKindsReview, type OwnKindsVerdict } from './own-kinds-review.ts';
import { forbiddenRevisionChanges } from './policy-revision-rules.ts';
import { PolicyRules, type PolicyRulesOptions } from './policy-rules.ts';
import { checkPolicyServer, type PolicyServerRulesOptions } from './policy-server-rules.ts';
import { type RestoredRevision, restoredRevisions } from './restored-revisions.ts';

export interface OwnKindsRulesOptions extends PolicyRulesOptions, PolicyServerRulesOptions {
  /** The user name of the controller. Only it may write revisions, and its writes are always allowed. */
  readonly controllerUser: string;
  /** Kinds of other controllers, with their rules. Default: none. */
  readonly contributed?: readonly ContributedKinds[];
  /** Kinds of other controllers of which users may write certain parts only. Default: none. */
  readonly guarded?: readonly GuardedKinds[];
}

/** The verdict by the object alone. */
export interface RulesVerdict extends OwnKindsVerdict {
  /** Rights that the user needs, or else the request is refused. Default: none. */
  readonly rights?: AuthorRightsNeeded;
  /** Revisions whose rights the user needs, too. Default: none. */
  readonly restored?: readonly RestoredRevision[];
}

const ALLOWED: OwnKindsVerdict = { warnings: [] };

/**
 * Validates writes of our own kinds, beyond their schemas. Deletions, objects that are being deleted and unchanged specs are
 * always allowed. When a spec changes, errors that it had before become warnings.
 */
export class OwnKindsRules {
  readonly #controllerUser: string;
  readonly #contributed: readonly ContributedKinds[];
  readonly #guarded: readonly GuardedKinds[];
  readonly #policies: PolicyRules;
  readonly #servers: PolicyServerRulesOptions;
  readonly #conditions = new MatchConditionCompiler();
  readonly #schemas = new Map<OwnKind, ObjectSchema>();

  constructor({
    controllerUser,
    contributed = [],
    guarded = [],
    appliesVerification,
    ...options
  }: OwnKindsRulesOptions) {
    this.#controllerUser = controllerUser;
    this.#contributed = contributed;
    this.#guarded = guarded;
    this.#servers = { appliesVerification };
    this.#policies = new PolicyRules(options);
  }

  validate(review: OwnKindsReview): RulesVerdict {
    const { operation, object, oldObject, username } = review;
    const isWrite = operation === 'CREATE' || operation === 'UPDATE';
    if (!isWrite || object === undefined || username === this.#controllerUser) {
      return ALLOWED;
    }
    const kind = OWN_KINDS.find((one) => isOf(review, one));
    if (kind === undefined) {
      return this.#validateGuarded(review, object) ?? this.#validateContributed(review, object);
    }
    if (kind.kind === POLICY_REVISIONS.kind) {
      return this.#validateRevision(review, object);
    }
    const isException = kind.kind === POLICY_EXCEPTIONS.kind;
    const hasRules = kind.group === POLICIES_GROUP || isException;
    if (review.subresource !== '' || isBeingDeleted(oldObject) || !hasRules) {
      return ALLOWED;
    }
    const findings = new Findings();
    const hasNewSpec = isSpecNew(object, oldObject);
    if (!isException) {
      this.#check(kind, review, object, hasNewSpec, findings);
    } else if (hasNewSpec) {
      this.#checkException(object, findings);
    }
    const { errors, warnings } = findings;
    if (errors.length > 0) {
      return { error: ApiError.invalid(kind, nameOf(review), errors), warnings };
    }
    if (!kind.namespaced || isException) {
      return { warnings };
    }
    // Controllers of the cluster must be able to change other metadata, such as finalizers.
    const restored = oldObject === undefined ? [] : restoredRevisions(annotationsOf(object), annotationsOf(oldObject));
    return {
      warnings,
      ...(hasNewSpec ? { rights: neededRights(objectAt(object, 'spec') ?? {}) } : {}),
      ...(restored.length === 0 ? {} : { restored }),
    };
  }

  /** What is found in an object that would be created. */
  findingsOf(kind: OwnKind, object: JsonObject): Findings {
    const findings = new Findings();
    if (kind.kind === POLICY_EXCEPTIONS.kind) {
      this.#checkException(object, findings);
    } else {
      this.#check(kind, { operation: 'CREATE', oldObject: undefined }, object, true, findings);
    }
    return findings;
  }

  /** API servers ask themselves whether the user may except: see the guard of the installation. */
  #checkException(object: JsonObject, findings: Findings): void {
    const checked = this.#read(POLICY_EXCEPTIONS, object, findings);
    if (checked !== undefined) {
      checkException(checked as PolicyException, Date.now(), this.#conditions, findings);
    }
  }

  /** @returns undefined for kinds that are not guarded */
  #validateGuarded(review: OwnKindsReview, object: JsonObject): OwnKindsVerdict | undefined {
    const guard = this.#guarded.find(({ kinds }) => kinds.some((one) => isOf(review, one)));
    const kind = guard?.kinds.find((one) => isOf(review, one));
    if (guard === undefined || kind === undefined) {
      return undefined;
    }
    const { username, oldObject } = review;
    const name = nameOf(review);
    const error = guard.refusal({ kind, name, username, object, oldObject, isStatus: review.subresource === 'status' });
    return { ...(error === undefined ? {} : { error }), warnings: [] };
  }

  #validateContributed(review: OwnKindsReview, object: JsonObject): OwnKindsVerdict {
    const { oldObject, subresource } = review;
    const contributor = this.#contributed.find(({ kinds }) => kinds.some((one) => isOf(review, one)));
    const kind = contributor?.kinds.find((one) => isOf(review, one));
    if (
      contributor === undefined ||
      kind === undefined ||
      subresource !== '' ||
      isBeingDeleted(oldObject) ||
      !isSpecNew(object, oldObject)
    ) {
      return ALLOWED;
    }
    const findings = new Findings();
    findings.add(contributor.review(kind, object, oldObject === undefined));
    if (findings.errors.length > 0 && oldObject !== undefined) {
      const before = new Findings();
      before.add(contributor.review(kind, oldObject, false));
      findings.downgradeKnown(before);
    }
    const { errors, warnings } = findings;
    return errors.length === 0 ? { warnings } : { error: ApiError.invalid(kind, nameOf(review), errors), warnings };
  }

  #validateRevision(review: OwnKindsReview, object: JsonObject): OwnKindsVerdict {
    const causes = forbiddenRevisionChanges(
      object as KubernetesObject,
      review.oldObject as KubernetesObject | undefined,
      review.username,
    );
    if (causes.length === 0) {
      return ALLOWED;
    }
    const findings = new Findings();
    findings.rejectAll('revision-writer', causes);
    const { group, kind } = POLICY_REVISIONS;
    const name = nameOf(review);
    const texts = findings.errors.map(({ field, message }) => `${field}: ${message}`).join(', ');
    const text = `${kind}.${group} "${name}" is written by ${this.#controllerUser} only, got ${review.username}: ${texts}`;
    return {
      error: new ApiError(403, 'Forbidden', text, { name, group, kind, causes: findings.errors }),
      warnings: [],
    };
  }

  #check(
    kind: OwnKind,
    { oldObject, operation }: Pick<OwnKindsReview, 'oldObject' | 'operation'>,
    object: JsonObject,
    hasNewSpec: boolean,
    findings: Findings,
  ): void {
    const old = operation === 'CREATE' ? undefined : oldObject;
    if (old === undefined) {
      this.#checkSpec(kind, object, true, findings);
    } else if (hasNewSpec) {
      this.#checkSpec(kind, object, false, findings);
      if (findings.errors.length > 0) {
        const before = new Findings();
        this.#checkSpec(kind, old, false, before);
        findings.downgradeKnown(before);
      }
      checkFixedFields(object, old, findings);
    }
    const checkAnnotations = kind.kind === POLICY_SERVERS.kind ? checkServerAnnotations : checkPolicyAnnotations;
    checkAnnotations(annotationsOf(object), annotationsOf(old ?? {}), findings);
    warnOfFailedPin(object, annotationsOf(object), annotationsOf(old ?? {}), findings);
  }

  #checkSpec(kind: OwnKind, object: JsonObject, isNew: boolean, findings: Findings): void {
    const checked = this.#read(kind, object, findings);
    if (checked === undefined) {
      return;
    }
    if (kind.kind === POLICY_SERVERS.kind) {
      checkPolicyServer((checked as PolicyServerObject).spec, findings, this.#servers);
      return;
    }
    const policy = checked as AdmissionPolicyObject;
    if (isNew) {
      this.#policies.checkName(policy, findings);
    }
    this.#policies.checkSpec(policy, findings);
  }

  /**
   * The object with defaults, or undefined if it violates our schema. API servers check the schema too, but their
   * CustomResourceDefinition may be of another version.
   */
  #read(kind: OwnKind, object: JsonObject, findings: Findings): KubernetesObject | undefined {
    let schema = this.#schemas.get(kind);
    if (schema === undefined) {
      schema = new ObjectSchema(kind.schema());
      this.#schemas.set(kind, schema);
    }
    const { name, namespace } = objectAt(object, 'metadata') ?? {};
    const spec = own(object, 'spec');
    const copy: MutableObject = {
      apiVersion: `${kind.group}/${kind.version}`,
      kind: kind.kind,
      metadata: {
        ...(typeof name === 'string' ? { name } : {}),
        ...(kind.namespaced && typeof namespace === 'string' ? { namespace } : {}),
      },
      ...(spec === undefined ? {} : { spec: structuredClone(spec) }),
    };
    schema.prune(copy);
    schema.applyDefaults(copy);
    const checked = copy as KubernetesObject;
    const errors = schema.validate(checked);
    findings.rejectAll('schema', errors);
    return errors.length === 0 ? checked : undefined;
  }
}

function isOf({ group, kind }: OwnKindsReview, one: OwnKind): boolean {
  return one.kind === kind && one.group === group;
}

function isBeingDeleted(oldObject: JsonObject | undefined): boolean {
  return own(objectAt(oldObject ?? {}, 'metadata') ?? {}, 'deletionTimestamp') !== undefined;
}

function isSpecNew(object: JsonObject, oldObject: JsonObject | undefined): boolean {
  return oldObject === undefined || !isDeepStrictEqual(own(object, 'spec'), own(oldObject, 'spec'));
}

function nameOf({ name, object }: OwnKindsReview): string {
  const given = own(objectAt(object ?? {}, 'metadata') ?? {}, 'name');
  return typeof given === 'string' ? given : name;
}

function annotationsOf(object: JsonObject): Readonly<Record<string, string>> {
  const annotations = own(objectAt(object, 'metadata') ?? {}, 'annotations');
  const texts = Object.entries(isJsonObject(annotations) ? annotations : {});
  return Object.fromEntries(texts.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
