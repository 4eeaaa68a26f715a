// The part of the WebAssembly JavaScript API that this folder uses. In TypeScript, only the DOM library declares it,
// with all other browser globals.
declare namespace WebAssembly {
  type ValueType = 'i32' | 'i64' | 'f32' | 'f64' | 'externref' | 'anyfunc' | 'v128';
  type ExternalKind = 'function' | 'global' | 'memory' | 'table' | 'tag';
  type ExportValue = ((...args: (number | bigint)[]) => number | bigint | undefined) | Global | Memory | Table;
  type Exports = Record<string, ExportValue>;
  type Imports = Record<string, Record<string, unknown>>;

  class Module {
    constructor(bytes: Uint8Array | ArrayBuffer);
    static exports(module: Module): { name: string; kind: ExternalKind }[];
    static imports(module: Module): { module: string; name: string; kind: ExternalKind }[];
    static customSections(module: Module, name: string): ArrayBuffer[];
  }
  class Instance {
    constructor(module: Module, imports?: Imports);
    readonly exports: Exports;
  }
  class Memory {
    constructor(descriptor: { initial: number; maximum?: number; shared?: boolean });
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  class Global {
    constructor(descriptor: { value: ValueType; mutable?: boolean }, value?: unknown);
    value: unknown;
  }
  class Table {
    constructor(descriptor: { element: ValueType; initial: number; maximum?: number });
    readonly length: number;
  }
  class CompileError extends Error {}
  class LinkError extends Error {}
  class RuntimeError extends Error {}
  function validate(bytes: Uint8Array | ArrayBuffer): boolean;
}
