import { createHash } from 'node:crypto';
import { type JsonObject, KeptEntries, parseJson, setOwn, shortened } from '../../values/index.ts';
import type { SettingsVerdict } from '../verdict/guest-verdict.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { ObjectLookup } from '../review/object-lookup.ts';
import { type FoundParameters, type ParameterSource, parameterSource } from './parameter-source.ts';
import type { ParametersDefinition } from './parameters-definition.ts';
import { SettingsExpression } from './settings-expression.ts';

/** The settings for a request, or its answer without an evaluation. */
export type EffectiveSettings =
  | { readonly kind: 'settings'; readonly settingsJson: string }
  /** There are no parameters, and `notFound` is `Allow`. */
  | { readonly kind: 'allowed' }
  | {
      readonly kind: 'refused';
      readonly message: string;
      readonly isMissing?: true;
      /** Whether the parameters are, or would be, in the namespace of the request, and go with it. */
      readonly isOfNamespace?: true;
    };

/**
 * Verdicts on settings, and last valid settings, that a policy remembers: those of twice the namespaces that Kubernetes
 * is tested with (10,000). A verdict takes a hundred bytes, settings usually some hundred.
 */
const MAX_REMEMBERED = 20_000;
/** Characters of a problem in a message, and of a remembered verdict. */
const MAX_PROBLEM_LENGTH = 1_024;

/** The verdict of a policy on settings; `isPostponed`: there is none yet. */
export type SettingsResult =
  | SettingsVerdict
  | { readonly valid: false; readonly message: string; readonly isPostponed: true };

/** A request for settings. */
export interface SettingsRequest {
  /** Empty for cluster-scoped and raw requests. */
  readonly namespace: string;
  readonly objects: ObjectLookup;
  /** Lets the policy validate settings. Throws what the guest throws. */
  readonly validate: (settingsJson: string) => SettingsResult;
}

type Evaluated = { readonly settingsJson: string } | { readonly problem: string; readonly isPostponed?: true };

/** The settings of one policy, or of a member of a group, for each namespace. */
export class ParameterizedSettings {
  readonly #definition: ParametersDefinition;
  /** The policy's own settings. */
  readonly #settingsJson: string;
  readonly #compiled: ReturnType<typeof SettingsExpression.compile>;
  readonly #source: ParameterSource;
  #settings: JsonObject | undefined;
  /** By published object: a changed object is another one. */
  readonly #evaluated = new WeakMap<
    JsonObject,
    { readonly namespace: JsonObject | null; readonly result: Evaluated }
  >();
  /** By hash of the settings, so that equal settings of many namespaces are validated once. */
  readonly #verdicts = new KeptEntries<string, SettingsVerdict>({ maxEntries: MAX_REMEMBERED });
  /** Last valid settings by the place of the parameters, for `KeepLast`. */
  readonly #lastValid = new KeptEntries<string, string>({ maxEntries: MAX_REMEMBERED });

  constructor(definition: ParametersDefinition, settingsJson: string) {
    this.#definition = definition;
    this.#settingsJson = settingsJson;
    this.#compiled = SettingsExpression.compile(definition.settingsExpression, definition.overridable);
    const usesNamespace = 'expression' in this.#compiled && this.#compiled.expression.usesNamespace;
    this.#source = parameterSource(definition, usesNamespace);
  }

  /** Why the expression cannot be used; undefined when it can. */
  get problem(): string | undefined {
    return 'problem' in this.#compiled ? `parameters.settingsExpression: ${this.#compiled.problem}` : undefined;
  }

  /** Whether requests may be evaluated with the policy's own settings alone. */
  get usesDefaults(): boolean {
    return this.#definition.notFound === 'UseDefaults';
  }

  /** @throws UnknownObject, and what `validate` throws */
  resolve(request: SettingsRequest): EffectiveSettings {
    const found = this.#source.find(request.namespace, request.objects);
    switch (found.state) {
      case 'found':
        return this.#withParameters(found, request);
      case 'absent':
        return this.#withoutParameters(found.message, request.namespace);
      case 'unreadable':
        return { kind: 'refused', message: found.message };
      default:
        return found satisfies never;
    }
  }

  #withoutParameters(message: string, namespace: string): EffectiveSettings {
    const { notFound } = this.#definition;
    switch (notFound) {
      case 'Allow':
        return { kind: 'allowed' };
      case 'UseDefaults':
        return { kind: 'settings', settingsJson: this.#settingsJson };
      case 'Deny':
        return { kind: 'refused', message, isMissing: true, ...this.#origin(namespace) };
      default:
        return notFound satisfies never;
    }
  }

  #withParameters(found: FoundParameters, request: SettingsRequest): EffectiveSettings {
    const place = this.#source.placeOf(request.namespace);
    const result = this.#evaluate(found, request);
    if ('settingsJson' in result) {
      if (this.#definition.onInvalid === 'KeepLast') {
        this.#lastValid.set(place, result.settingsJson);
      }
      return { kind: 'settings', settingsJson: result.settingsJson };
    }
    const last = this.#lastValid.get(place) ?? this.#previous(found, request);
    return last === undefined
      ? {
          kind: 'refused',
          message: `the parameters of ${place} are invalid: ${result.problem}`,
          ...this.#origin(request.namespace),
        }
      : { kind: 'settings', settingsJson: last };
  }

  #origin(namespace: string): { readonly isOfNamespace?: true } {
    return this.#source.isWithin(namespace) ? { isOfNamespace: true } : {};
  }

  /**
   * The settings of the parameters before their last change, with `KeepLast`: all workers have them, also those that no
   * request reached meanwhile.
   */
  #previous({ previous }: FoundParameters, request: SettingsRequest): string | undefined {
    if (previous === undefined || this.#definition.onInvalid !== 'KeepLast') {
      return undefined;
    }
    const result = this.#evaluate(previous, request);
    return 'settingsJson' in result ? result.settingsJson : undefined;
  }

  #evaluate(found: FoundParameters, request: SettingsRequest): Evaluated {
    const known = this.#evaluated.get(found.object);
    if (known !== undefined && known.namespace === found.namespace) {
      return known.result;
    }
    const result = this.#compute(found, request);
    if (!('isPostponed' in result)) {
      this.#evaluated.set(found.object, { namespace: found.namespace, result });
    }
    return result;
  }

  #compute(found: FoundParameters, { namespace, validate }: SettingsRequest): Evaluated {
    if ('problem' in this.#compiled) {
      return this.#compiled;
    }
    const { params, namespaceObject } = this.#source.values(found, namespace);
    const overrides = this.#compiled.expression.evaluate(params, namespaceObject);
    if ('problem' in overrides) {
      return { problem: shortened(overrides.problem, MAX_PROBLEM_LENGTH) };
    }
    const settingsJson = this.#merged(overrides.values);
    const verdict = this.#validated(settingsJson, validate);
    if (verdict.valid) {
      return { settingsJson };
    }
    return 'isPostponed' in verdict ? { problem: verdict.message, isPostponed: true } : { problem: verdict.message };
  }

  #merged(values: JsonObject): string {
    this.#settings ??= settingsOf(this.#settingsJson);
    const merged: JsonObject = {};
    for (const [key, value] of [...Object.entries(this.#settings), ...Object.entries(values)]) {
      setOwn(merged, key, value);
    }
    return JSON.stringify(merged);
  }

  #validated(settingsJson: string, validate: SettingsRequest['validate']): SettingsResult {
    const hash = createHash('sha256').update(settingsJson).digest('base64');
    const known = this.#verdicts.get(hash);
    if (known !== undefined) {
      return known;
    }
    const verdict = validate(settingsJson);
    if ('isPostponed' in verdict) {
      return verdict;
    }
    const kept = verdict.valid ? verdict : { ...verdict, message: shortened(verdict.message, MAX_PROBLEM_LENGTH) };
    this.#verdicts.set(hash, kept);
    return kept;
  }
}

function settingsOf(settingsJson: string): JsonObject {
  const settings = parseJson(settingsJson);
  return isJsonObject(settings) ? settings : {};
}
