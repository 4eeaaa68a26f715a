// Why a policy is pending: the chain of dependencies to what keeps all of them waiting, in sentences.
import type { ObjectKey } from '../../../resources/index.ts';
import { shortened } from '../../../values/index.ts';
import { objectId } from '../dependency.ts';
import type { DependencyLookup, UnmetDependency } from '../unmet-dependencies.ts';
import type { DependencyGraph } from './dependency-graph.ts';
import { partText, requirementText } from './dependency-text.ts';
import { type GraphPolicy, type GraphTemplate, policyText } from './graph-policy.ts';
import { printableText } from './printable-text.ts';
import { stateSince } from './state-since.ts';

/** Sentences of one explanation: what a user reads. */
const MAX_SENTENCES = 50;
/** Length of a message within a sentence. Characters. */
const MAX_MESSAGE_LENGTH = 300;

export interface PendingExplanation {
  /** One for each dependency that is not met, beginning with those of the subject. */
  readonly sentences: readonly string[];
  /** The dependencies that wait for nothing further: what a user can act on. */
  readonly rootCauses: readonly UnmetDependency[];
}

/** A policy, or one template of it, that may wait. */
interface Subject {
  readonly policy: GraphPolicy;
  readonly template: GraphTemplate | undefined;
}

/** Explains why a policy, or one of its templates, is pending. */
export function explainPending(
  graph: DependencyGraph,
  key: Required<ObjectKey>,
  lookup: DependencyLookup,
  templateName?: string,
): PendingExplanation {
  const policy = graph.policy(key);
  const template = policy?.templates.find(({ name }) => name === templateName);
  if (policy === undefined || (templateName !== undefined && template === undefined)) {
    const what = templateName === undefined ? 'does not exist' : `has no template ${templateName}`;
    return { sentences: [printableText(`policy ${policyText(key)} ${what}.`)], rootCauses: [] };
  }
  return new ExplainedPending(graph, lookup).explain({ policy, template });
}

class ExplainedPending {
  readonly #graph: DependencyGraph;
  readonly #lookup: DependencyLookup;
  readonly #sentences: string[] = [];
  readonly #rootCauses = new Map<string, UnmetDependency>();
  readonly #seen = new Set<GraphPolicy | GraphTemplate>();

  constructor(graph: DependencyGraph, lookup: DependencyLookup) {
    this.#graph = graph;
    this.#lookup = lookup;
  }

  explain(subject: Subject): PendingExplanation {
    const queue = [subject];
    for (const next of queue) {
      if (this.#sentences.length < MAX_SENTENCES && !this.#seen.has(next.template ?? next.policy)) {
        this.#seen.add(next.template ?? next.policy);
        queue.push(...this.#explainOne(next));
      }
    }
    if (this.#sentences.length === 0) {
      this.#sentences.push(`${printableText(partText(subject.policy, subject.template))} waits for nothing.`);
    }
    return { sentences: this.#sentences.slice(0, MAX_SENTENCES), rootCauses: [...this.#rootCauses.values()] };
  }

  /** Adds the sentences of one subject, and returns what waits further. */
  #explainOne({ policy, template }: Subject): readonly Subject[] {
    const unmet = new Map<string, { readonly dependency: UnmetDependency; readonly templates: GraphTemplate[] }>();
    const templates = template === undefined ? policy.templates : [template];
    for (const each of templates) {
      for (const dependency of this.#graph.unmetOf(each, this.#lookup)) {
        const id = JSON.stringify([objectId(dependency), dependency.reason]);
        unmet.set(id, { dependency, templates: [...(unmet.get(id)?.templates ?? []), each] });
      }
    }
    return [...unmet.values()].slice(0, MAX_SENTENCES).flatMap(({ dependency, templates: waiting }) => {
      const isWhole = template === undefined && waiting.length === policy.templates.length;
      const subjects = isWhole ? [undefined] : waiting;
      subjects.forEach((one) => this.#sentences.push(this.#sentence(policy, one, dependency)));
      return this.#further(dependency);
    });
  }

  #sentence(policy: GraphPolicy, template: GraphTemplate | undefined, dependency: UnmetDependency): string {
    const object = requirementText(this.#graph, dependency);
    const why = this.#why(dependency);
    return printableText(`${partText(policy, template)} waits for ${object}, ${why}.`);
  }

  #why(dependency: UnmetDependency): string {
    const { reason, kind, apiVersion, detail } = dependency;
    switch (reason) {
      case 'NoSuchKind':
        return `but the cluster has no kind ${kind} in ${apiVersion}: install its CRD`;
      case 'NotFound':
        return 'which does not exist';
      case 'NotPlaced':
        return 'which is not placed on this cluster';
      case 'NoStatus':
        return 'which has no status yet';
      case 'Stale':
        return 'whose status is about an older spec';
      case 'Forbidden':
        return `which may not be read: ${detail}`;
      case 'GetFailed':
        return `which could not be read: ${detail}`;
      case 'Mismatch':
        return this.#mismatch(dependency);
      case 'Cycle':
        return `which waits for it in turn, for ever, in the cycle ${detail}: remove one of these dependencies`;
      default:
        return reason satisfies never;
    }
  }

  /** `which is … since … and must be …: …`, as far as it is known. */
  #mismatch(dependency: UnmetDependency): string {
    const { actual = '', compliance, detail } = dependency;
    const found = this.#lookup(dependency);
    const { since, message } =
      found.type === 'found' ? stateSince(found.object, actual) : { since: '', message: undefined };
    const text = message === undefined ? '' : shortened(message || detail, MAX_MESSAGE_LENGTH).replace(/\.$/u, '');
    const expected = actual === 'NonCompliant' || actual === 'Pending' ? '' : ` and must be ${compliance}`;
    return `which is ${actual}${since === '' ? '' : ` since ${since}`}${expected}${text === '' ? '' : `: ${text}`}`;
  }

  /** Unmet dependencies of the object of a dependency; a root cause if there are none. */
  #further(dependency: UnmetDependency): readonly Subject[] {
    const target = this.#graph.targetOf(dependency);
    // The whole cycle is named at once, and so is what to do.
    if (dependency.reason === 'Cycle') {
      this.#rootCauses.set(objectId(dependency), dependency);
      return [];
    }
    const isWaiting = dependency.reason !== 'NotPlaced' && dependency.actual !== 'NonCompliant' && target !== undefined;
    const waiting = isWaiting ? this.#waitingParts(target) : [];
    if (waiting.length === 0) {
      this.#rootCauses.set(objectId(dependency), dependency);
    }
    return waiting;
  }

  #waitingParts(target: Subject): readonly Subject[] {
    const templates = target.template === undefined ? target.policy.templates : [target.template];
    return templates.some((template) => this.#graph.unmetOf(template, this.#lookup).length > 0) ? [target] : [];
  }
}
