// What workers are given, for tests of those who give it.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { MessageChannel } from 'node:worker_threads';
import { parsePolicies } from '../../engine/index.ts';
import type { ExecutionMode } from '../../modules/index.ts';
import { compileModule } from '../../wasm/index.ts';
import type { CapabilityConnection } from '../capabilities/capability-connection.ts';
import { KindRevisions } from '../cluster-objects/kind-revisions.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { TableChange, TableEntry } from '../evaluation-protocol.ts';

/** A guest of `test/fixtures/guests`. */
export function moduleOf(name: string, mode: ExecutionMode = 'kubewarden-wapc'): CompiledPolicyModule {
  const bytes = readFileSync(new URL(`../../../test/fixtures/guests/${name}.wasm`, import.meta.url));
  const isolation = mode === 'wasi' ? 'fresh' : 'restore';
  return {
    digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
    mode,
    compiled: compileModule(bytes, { memoryLimitBytes: 64 * 1024 * 1024, isolation }),
  };
}

/** A policy of a module; `rest` are more lines of its declaration, as a policies file has them. */
export function tableEntry(id: string, module: CompiledPolicyModule, rest = ''): TableEntry {
  const [definition] = parsePolicies(`${id}:\n  module: file:///m.wasm\n${rest}`, 'policies.yml').policies;
  assert.ok(definition);
  return { id, definition, digests: { 'file:///m.wasm': module.digest } };
}

export function tableChange(upserts: readonly TableEntry[], rest: Partial<TableChange> = {}): TableChange {
  return { upserts, removals: [], modules: [], retired: [], ...rest };
}

/** A connection on which nothing is ever answered. */
export function silentCapabilities(): CapabilityConnection {
  return {
    port: new MessageChannel().port2,
    answered: new SharedArrayBuffer(4),
    revisions: new KindRevisions().buffer,
  };
}
