// Resolves `{{hub … hub}}` of a Policy for a copy.
import { GOVERNANCE_ANNOTATIONS, keyOf, type ObjectKey, POLICIES, type Policy } from '../../../resources/index.ts';
import type { EvaluatedSpec, EvaluationLanes } from '../../evaluation/evaluation-lanes.ts';
import { EvaluationObjects } from '../../evaluation/evaluation-objects.ts';
import { type ResolvedTemplate, unresolvedTemplates } from '../../evaluation/hub-templates-evaluation.ts';
import type { KindMappings } from '../../objects/kind-mappings.ts';
import type { MissingKinds } from '../../objects/missing-kinds.ts';
import type { ObjectReader } from '../../objects/watched-kinds.ts';
import type { Target } from '../../targets/targets.ts';
import { hasHubTemplates } from '../../templates/index.ts';

/** Delay before objects that could not be read are read again. Milliseconds. */
const UNREADABLE_RETRY_MS = 10_000;

export interface HubTemplatesOptions {
  readonly mappings: KindMappings;
  /** Reads as the governance account. */
  readonly reader: ObjectReader;
  readonly missing: MissingKinds;
  /** Of all policies that are evaluated in this process. */
  readonly evaluations: EvaluationLanes;
  /** Enqueues a root. */
  readonly wake: (key: ObjectKey) => void;
}

/** A copy without templates of the hub. */
export interface ResolvedCopy {
  /** Templates that could not be resolved are unchanged, with the error in an annotation. */
  readonly copy: Policy;
  readonly errors: readonly string[];
  /** Set if objects could not be read, or the evaluation was ended. */
  readonly retryAfterMs: number | undefined;
}

/** The templates are slow, and not resolved yet. */
export interface Postponed {
  /** Undefined: the root is enqueued when they are. */
  readonly waitMs: number | undefined;
}

export class HubTemplates {
  readonly #options: HubTemplatesOptions;

  constructor(options: HubTemplatesOptions) {
    this.#options = options;
  }

  /**
   * Resolves the templates of a copy. Changes of all objects that they look up enqueue the copy.
   * @throws ApiError, ClusterError of reads; Stalled
   */
  async resolve(root: Policy, copy: Policy, target: Target, signal: AbortSignal): Promise<ResolvedCopy | Postponed> {
    const key = keyOf(copy);
    const templates = copy.spec['policy-templates'];
    if (isLiteral(root) || !templates.some(({ objectDefinition }) => hasHubTemplates(objectDefinition))) {
      this.forget(key);
      return { copy, errors: [], retryAfterMs: undefined };
    }
    const evaluated = await this.#options.evaluations.evaluate(
      specOf(root, key),
      {
        run: async (run, limit) => {
          const { mappings, reader, missing } = this.#options;
          const objects = new EvaluationObjects({ key, mappings, reader, missing, namespaces: () => [] });
          const input = { root, templates, clusterName: target.name, now: Date.now() };
          const resolved = await objects.evaluate(() => run('hubTemplates', input, objects), limit);
          return { resolved, isUnreadable: objects.failures.length > 0 };
        },
        wake: () => this.#options.wake(key),
      },
      signal,
    );
    switch (evaluated.state) {
      case 'later':
        return { waitMs: evaluated.afterMs };
      case 'ended':
        return copyWith(copy, unresolvedTemplates(templates, evaluated.reason), evaluated.retryAfterMs);
      case 'done': {
        const { resolved, isUnreadable } = evaluated.result;
        return copyWith(copy, resolved, isUnreadable ? UNREADABLE_RETRY_MS : undefined);
      }
      default:
        return evaluated satisfies never;
    }
  }

  /** Ends the watches for a copy that is gone. */
  forget(key: ObjectKey): void {
    this.#options.reader.use(key, []);
    this.#options.missing.set(key, []);
    this.#options.evaluations.forget({ kind: POLICIES.kind, key });
  }
}

function specOf({ metadata: { namespace = '', generation } }: Policy, key: ObjectKey): EvaluatedSpec {
  return { kind: POLICIES.kind, key, generation, owner: namespace };
}

function copyWith(copy: Policy, resolved: readonly ResolvedTemplate[], retryAfterMs: number | undefined): ResolvedCopy {
  return {
    copy: { ...copy, spec: { ...copy.spec, 'policy-templates': resolved.map(({ template }) => template) } },
    errors: resolved.flatMap(({ error }) => error ?? []),
    retryAfterMs,
  };
}

function isLiteral({ metadata }: Policy): boolean {
  return metadata.annotations?.[GOVERNANCE_ANNOTATIONS.disableTemplates] === 'true';
}
