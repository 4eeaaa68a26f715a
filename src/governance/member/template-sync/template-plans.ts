// Plans each template of a copy: reads its object and those of its dependencies, all at the same moment.
import { isDeepStrictEqual } from 'node:util';
import {
  groupVersionOf,
  type JsonObject,
  type KubernetesObject,
  type ObjectKey,
  own,
  POLICIES,
  type Policy,
  type PolicyTemplate,
  textOf,
  valueAt,
} from '../../../resources/index.ts';
import { errorText } from '../../../values/index.ts';
import {
  type DependencyGraph,
  type DependencyLookup,
  type DependencyUnion,
  type ExistingTemplate,
  hasUniqueNames,
  planTemplate,
  readDependencies,
  type TemplateMapping,
  type TemplatePlan,
  unionDependencies,
  unmetDependencies,
  type UnmetDependency,
} from '../../dependencies/index.ts';
import type { MissingKinds } from '../../objects/missing-kinds.ts';
import type { ObjectReader } from '../../objects/watched-kinds.ts';
import { hubTemplateErrorOf } from '../../evaluation/hub-templates-evaluation.ts';
import { rootOf } from '../../targets/policy-copy.ts';
import type { DependencyObjects } from './dependency-objects.ts';
import type { TemplateKind, TemplateKinds } from './template-kinds.ts';
import { POLICY_ANNOTATION } from './template-object.ts';

/** A template, and what happens with it in a pass. */
export interface PlannedTemplate {
  readonly template: PolicyTemplate;
  /** Undefined if the cluster does not serve the kind. */
  readonly kind: TemplateKind | undefined;
  /** The key of its object. */
  readonly key: ObjectKey;
  /** Its object in the cluster. */
  readonly stored: KubernetesObject | undefined;
  readonly plan: TemplatePlan;
}

export interface TemplatePlansOptions {
  /** Of the copies and their templates. */
  readonly namespace: string;
  readonly kinds: TemplateKinds;
  readonly dependencies: DependencyObjects;
  readonly reader: ObjectReader;
  readonly missing: MissingKinds;
  /** The graph of all Policies. @throws DependencyError */
  readonly graph: () => DependencyGraph;
}

/** The kind of a template, or why it is not known. */
type FoundKind = { readonly kind: TemplateKind } | { readonly missing: string };

export class TemplatePlans {
  readonly #options: TemplatePlansOptions;

  constructor(options: TemplatePlansOptions) {
    this.#options = options;
  }

  /** Plans the templates of a copy. Changes of all objects that the plans read enqueue the copy. */
  async of(copy: Policy, signal: AbortSignal): Promise<readonly PlannedTemplate[]> {
    const { dependencies, reader, missing, namespace } = this.#options;
    const { dependencies: listed, 'policy-templates': templates } = copy.spec;
    const key = { namespace, name: copy.metadata.name ?? '' };
    const topLevel = readDependencies(listed);
    const unions = templates.map(({ extraDependencies }) =>
      unionDependencies(topLevel, readDependencies(extraDependencies), namespace),
    );
    const mapped = await dependencies.map(
      unions.flatMap(({ requirements }) => requirements),
      signal,
    );
    const found = await Promise.all(templates.map((template) => this.#kindOf(template, signal)));
    const foreign = found.flatMap((one) => ('kind' in one && one.kind.isWatchedHere ? [{ type: one.kind.type }] : []));
    reader.use(key, [...mapped.selections, ...foreign]);
    missing.set(key, [...mapped.missingGroups, ...missingGroups(templates, found)]);
    const lookup = await dependencies.read(mapped, signal);
    const isUnique = hasUniqueNames(templates.map(({ objectDefinition }) => objectDefinition));
    const unmet = this.#unmet(copy, unions, lookup);
    return templates.map((template, index) => {
      const union = unions[index] ?? NO_DEPENDENCIES;
      return this.#plan(
        copy,
        { template, index, union, found: found[index] ?? UNKNOWN, unmet: unmet[index] ?? [] },
        isUnique,
      );
    });
  }

  /** Ends the following of objects for a copy that is gone. */
  forget(key: ObjectKey): void {
    this.#options.reader.use(key, []);
    this.#options.missing.set(key, []);
  }

  async #kindOf({ objectDefinition }: PolicyTemplate, signal: AbortSignal): Promise<FoundKind> {
    const { apiVersion, kind } = typeOf(objectDefinition);
    if (kind === '') {
      return UNKNOWN;
    }
    try {
      const found = await this.#options.kinds.find(apiVersion, kind, signal);
      return found === undefined
        ? { missing: `no matches for kind "${kind}" in version "${apiVersion}"` }
        : { kind: found };
    } catch (error) {
      signal.throwIfAborted();
      return { missing: errorText(error) };
    }
  }

  /** The unmet dependencies of all templates. */
  #unmet(
    copy: Policy,
    unions: readonly DependencyUnion[],
    lookup: DependencyLookup,
  ): readonly (readonly UnmetDependency[])[] {
    const graph = this.#options.graph();
    const { namespace = '', name = '' } = rootOf(copy.metadata.name ?? '') ?? {};
    const inGraph = graph.policy({ namespace, name })?.templates ?? [];
    return unions.map(({ requirements }, index) => {
      const template = inGraph[index];
      // The graph has the newest spec, which the copy may not have yet.
      return template !== undefined && isDeepStrictEqual(template.requirements, requirements)
        ? graph.unmetOf(template, lookup)
        : unmetDependencies(requirements, lookup);
    });
  }

  #plan(copy: Policy, { template, index, union, found, unmet }: PlanInput, isUnique: boolean): PlannedTemplate {
    const { namespace } = this.#options;
    const name = nameOf(template.objectDefinition);
    const kind = 'kind' in found ? found.kind : undefined;
    const key = kind?.type.namespaced === false ? { name } : { namespace, name };
    const stored = name === '' ? undefined : kind?.get(key);
    const mapping: TemplateMapping =
      'kind' in found
        ? { isServed: true, isPolicyType: found.kind.isAllowed }
        : { isServed: false, message: found.missing };
    const plan = planTemplate({
      policy: copy.metadata.name ?? '',
      index,
      hasUniqueNames: isUnique,
      objectDefinition: template.objectDefinition,
      ignorePending: template.ignorePending ?? false,
      dependencies: union,
      mapping,
      unmet,
      existing: stored === undefined ? undefined : existingTemplate(stored),
      hubTemplateError: hubTemplateErrorOf(template.objectDefinition),
    });
    return { template, kind, key, stored, plan };
  }
}

interface PlanInput {
  readonly template: PolicyTemplate;
  readonly index: number;
  readonly union: DependencyUnion;
  readonly found: FoundKind;
  readonly unmet: readonly UnmetDependency[];
}

const NO_DEPENDENCIES: DependencyUnion = { requirements: [], conflict: undefined };
const UNKNOWN: FoundKind = { missing: 'the kind is missing' };

function missingGroups(templates: readonly PolicyTemplate[], found: readonly FoundKind[]): readonly string[] {
  return templates.flatMap(({ objectDefinition }, index) => {
    const one = found[index];
    return one !== undefined && 'missing' in one ? [groupVersionOf(typeOf(objectDefinition).apiVersion).group] : [];
  });
}

function existingTemplate(stored: KubernetesObject): ExistingTemplate {
  const owner = (stored.metadata.ownerReferences ?? []).find(
    ({ apiVersion, kind }) => kind === POLICIES.kind && groupVersionOf(apiVersion).group === POLICIES.group,
  );
  const { metadata } = stored;
  const policy = metadata.namespace === undefined ? metadata.annotations?.[POLICY_ANNOTATION] : owner?.name;
  return { policy, pruneObjectBehavior: textOf(valueAt(stored, 'spec', 'pruneObjectBehavior')) };
}

function typeOf(definition: JsonObject): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion: textOf(own(definition, 'apiVersion')), kind: textOf(own(definition, 'kind')) };
}

function nameOf(definition: JsonObject): string {
  return textOf(valueAt(definition, 'metadata', 'name'));
}
