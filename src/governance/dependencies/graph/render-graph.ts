// The graph as a tree of text, and in the languages of Graphviz and Mermaid.
import { GOVERNANCE_GROUP } from '../../../resources/index.ts';
import { compareStrings } from '../../../go/index.ts';
import { complianceOf } from '../compliance-of.ts';
import { objectId, type Requirement } from '../dependency.ts';
import type { DependencyLookup } from '../unmet-dependencies.ts';
import type { DependencyGraph } from './dependency-graph.ts';
import { partText, requirementText } from './dependency-text.ts';
import type { GraphPolicy, GraphTemplate } from './graph-policy.ts';
import { printableText } from './printable-text.ts';

/** Depth of a tree; what is deeper begins a tree of its own, because each level indents its lines further. */
const MAX_TREE_DEPTH = 40;
/** The state of a policy or template that exists, but is not in the namespace of the cluster. */
const NOT_APPLIED = 'not applied';

interface Node {
  /** `n0`: safe in every language. */
  readonly id: string;
  readonly label: string;
  /** `Compliant`, `not found`; `not applied` for a policy or template of the graph; empty without a lookup. */
  readonly state: string;
  readonly edges: Edge[];
}

interface Edge {
  readonly to: Node;
  /** The required state; undefined from a policy to a template of it. */
  readonly required: string | undefined;
}

/** A tree of text: each policy with what it depends on. What was printed before is not repeated. */
export function graphAsText(graph: DependencyGraph, lookup?: DependencyLookup): string {
  const nodes = drawnNodes(graph, lookup);
  const dependedOn = new Set(nodes.flatMap(({ edges }) => edges.map(({ to }) => to)));
  const printed = new Set<Node>();
  const lines: string[] = [];
  // The policies of a cycle are all depended on: those that no tree contains begin one.
  for (const roots of [nodes.filter((node) => !dependedOn.has(node)), [...nodes]]) {
    for (const root of roots) {
      if (!printed.has(root)) {
        printTree(root, printed, lines, roots);
      }
    }
  }
  return lines.map((line) => `${line}\n`).join('');
}

/** A graph for Graphviz (https://graphviz.org/doc/info/lang.html). */
export function graphAsDot(graph: DependencyGraph, lookup?: DependencyLookup): string {
  const quoted = (text: string): string => `"${printableText(text).replace(/["\\]/gu, String.raw`\$&`)}"`;
  return languageText(
    'digraph dependencies {\n  rankdir=LR;\n  node [shape=box];\n',
    drawnNodes(graph, lookup),
    '}\n',
    {
      node: ({ id, label, state }) => `  ${id} [label=${quoted(withState(label, state))}];\n`,
      edge: (from, { to, required }) =>
        `  ${from.id} -> ${to.id} [${required === undefined ? 'style=dashed' : `label=${quoted(required)}`}];\n`,
    },
  );
}

/** A flowchart for Mermaid (https://mermaid.js.org/syntax/flowchart.html). */
export function graphAsMermaid(graph: DependencyGraph, lookup?: DependencyLookup): string {
  // Entities for all characters that could end the text, be HTML, or be Markdown.
  const quoted = (text: string): string =>
    `"${printableText(text).replace(/[^\p{L}\p{M}\p{N} ./_:,()-]/gu, (found) => `#${found.codePointAt(0) ?? 0};`)}"`;
  return languageText('flowchart LR\n', drawnNodes(graph, lookup), '', {
    node: ({ id, label, state }) => `  ${id}[${quoted(withState(label, state))}]\n`,
    edge: (from, { to, required }) =>
      `  ${from.id} ${required === undefined ? '-.->' : `-->|${quoted(required)}|`} ${to.id}\n`,
  });
}

interface Language {
  readonly node: (node: Node) => string;
  readonly edge: (from: Node, edge: Edge) => string;
}

function languageText(head: string, nodes: readonly Node[], tail: string, { node, edge }: Language): string {
  const edges = nodes.flatMap((from) => from.edges.map((each) => edge(from, each)));
  return [head, ...nodes.map(node), ...edges, tail].join('');
}

/** Not recursive, like all that follows dependencies. */
function printTree(root: Node, printed: Set<Node>, lines: string[], roots: Node[]): void {
  const stack = [{ node: root, text: '', head: '', indent: '', depth: 0 }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { node, text, head, indent, depth } = next;
    const isRepeated = printed.has(node);
    const isTooDeep = depth === MAX_TREE_DEPTH && !isRepeated;
    const note = node.edges.length === 0 ? '' : isRepeated ? ' (see above)' : isTooDeep ? ' (see below)' : '';
    lines.push(`${head}${printableText(`${text}${withState(node.label, node.state)}`)}${note}`);
    if (isTooDeep) {
      roots.push(node);
      continue;
    }
    printed.add(node);
    for (const [index, { to, required }] of (isRepeated ? [] : node.edges).toReversed().entries()) {
      const [branch, line] = index === 0 ? ['└─ ', '   '] : ['├─ ', '│  '];
      stack.push({
        node: to,
        text: required === undefined ? '' : `needs ${required}: `,
        head: `${indent}${branch}`,
        indent: `${indent}${line}`,
        depth: depth + 1,
      });
    }
  }
}

function withState(label: string, state: string): string {
  return state === '' ? label : `${label} [${state}]`;
}

/** All policies, by name, and what they depend on. Templates appear only where they differ from their policy. */
function drawnNodes(graph: DependencyGraph, lookup: DependencyLookup | undefined): readonly Node[] {
  const drawing = new Drawing(graph, lookup);
  const policies = graph.policies.toSorted((left, right) => compareStrings(partText(left), partText(right)));
  policies.forEach((policy) => drawing.policyNode(policy));
  policies.forEach((policy) => drawing.connect(policy));
  return drawing.nodes;
}

class Drawing {
  readonly nodes: Node[] = [];
  readonly #byKey = new Map<string, Node>();
  readonly #graph: DependencyGraph;
  readonly #lookup: DependencyLookup | undefined;

  constructor(graph: DependencyGraph, lookup: DependencyLookup | undefined) {
    this.#graph = graph;
    this.#lookup = lookup;
  }

  policyNode(policy: GraphPolicy): Node {
    const name = `${policy.namespace}.${policy.name}`;
    const requirement = { apiVersion: `${GOVERNANCE_GROUP}/v1`, kind: 'Policy', name, compliance: '' };
    const namespace = this.#graph.clusterNamespace;
    return this.#node(`policy ${name}`, partText(policy), { ...requirement, namespace }, NOT_APPLIED);
  }

  /** Adds the edges of a policy: what all templates need from the policy, the rest from its template. */
  connect(policy: GraphPolicy): void {
    const [first, ...others] = policy.templates.map(
      ({ requirements }) => new Map(requirements.map((requirement) => [objectId(requirement), requirement])),
    );
    const shared = [...(first ?? [])].filter(([id]) => others.every((map) => map.has(id)));
    const sharedIds = new Set(shared.map(([id]) => id));
    shared.forEach(([, requirement]) => this.#addEdge(this.policyNode(policy), requirement));
    for (const template of policy.templates) {
      for (const requirement of template.requirements.filter((each) => !sharedIds.has(objectId(each)))) {
        this.#addEdge(this.#templateNode(policy, template), requirement);
      }
    }
  }

  #addEdge(from: Node, requirement: Requirement): void {
    from.edges.push({ to: this.#target(requirement), required: requirement.compliance });
  }

  #target(requirement: Requirement): Node {
    const target = this.#graph.targetOf(requirement);
    if (target?.template !== undefined) {
      return this.#templateNode(target.policy, target.template);
    }
    return target === undefined
      ? this.#node(
          `object ${objectId(requirement)}`,
          requirementText(this.#graph, requirement),
          requirement,
          'not found',
        )
      : this.policyNode(target.policy);
  }

  #templateNode(policy: GraphPolicy, template: GraphTemplate): Node {
    const { apiVersion, kind, name } = template;
    const namespace = this.#graph.clusterNamespace;
    const object = { apiVersion, kind, name, namespace, compliance: '' };
    const key = `template ${policy.namespace}.${policy.name} ${policy.templates.indexOf(template)}`;
    const isNew = !this.#byKey.has(key);
    const node = this.#node(key, partText(policy, template), object, NOT_APPLIED);
    if (isNew) {
      this.policyNode(policy).edges.push({ to: node, required: undefined });
    }
    return node;
  }

  #node(key: string, label: string, requirement: Requirement, absent: string): Node {
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      return known;
    }
    const node = { id: `n${this.nodes.length}`, label, state: this.#state(requirement, absent), edges: [] };
    this.#byKey.set(key, node);
    this.nodes.push(node);
    return node;
  }

  /** @param absent the state of an object that does not exist */
  #state(requirement: Requirement, absent: string): string {
    const found = this.#lookup?.(requirement);
    if (found === undefined) {
      return '';
    }
    switch (found.type) {
      case 'found': {
        const compliance = complianceOf(found.object);
        return 'state' in compliance ? compliance.state : compliance.unknown === 'Stale' ? 'stale' : 'no status';
      }
      case 'failed':
      case 'forbidden':
        return 'not readable';
      case 'not-found':
        return absent;
      default:
        return found.type.replaceAll('-', ' ');
    }
  }
}
