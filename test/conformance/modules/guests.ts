// The guests of the corpus: the examples, and programs that stand for other kinds of published policies.
import { c, committed, type Compiler, go } from './compilers.ts';

/** A policy with its manifest, its metadata and its cases. */
export interface CorpusGuest {
  readonly name: string;
  /** Of the guest, below `examples/` or `guests/`. */
  readonly folder: string;
  readonly kind: string;
  readonly compiler: Compiler;
  /** Whether it is served beside others, in what they leave of the memory. */
  readonly isLarge?: boolean;
  /** Names of the optimizers. Default: all. */
  readonly optimizers?: readonly string[];
  /** What the administrator allows for it, with so many times the memory of the chart. Default: nothing is said. */
  readonly allowed?: { readonly maxModuleMebibytes: number; readonly memory: number };
}

export const GUESTS: readonly CorpusGuest[] = [
  { name: 'go-validation', folder: 'examples/image-registries', kind: 'Go, WASI', compiler: committed },
  { name: 'go-mutation', folder: 'go/mutation', kind: 'Go, WASI', compiler: go },
  { name: 'go-context', folder: 'go/context', kind: 'Go, WASI', compiler: go },
  { name: 'go-cel', folder: 'go/cel', kind: 'Go, WASI', compiler: go, isLarge: true },
  {
    name: 'go-kubernetes',
    folder: 'go-kubernetes/kubernetes',
    kind: 'Go, WASI',
    compiler: go,
    optimizers: ['raw'],
    allowed: { maxModuleMebibytes: 80, memory: 3 },
  },
  { name: 'rust', folder: 'examples/pod-privileged', kind: 'Rust, waPC', compiler: committed },
  { name: 'assemblyscript', folder: 'examples/required-labels', kind: 'AssemblyScript, waPC', compiler: committed },
  { name: 'rego', folder: 'examples/host-namespaces', kind: 'Rego, OPA', compiler: committed },
  { name: 'gatekeeper', folder: 'examples/container-limits', kind: 'Rego, Gatekeeper', compiler: committed },
  { name: 'c', folder: 'c-privileged', kind: 'C, WASI', compiler: c },
];
