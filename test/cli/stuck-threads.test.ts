// `portcullis start` ends soon after SIGTERM, where a policy keeps one of its threads in native code. The roles of clusters:
// controller.test.ts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { ROOT } from './command.ts';
import { StartedPortcullis } from './started.ts';

it('start ends soon after SIGTERM where a policy keeps its threads in native code', { timeout: 120_000 }, async () => {
  const flags = ['--import', join(ROOT, 'test/fixtures/stuck-threads.mjs')];
  await using started = await StartedPortcullis.startWithNode(flags);
  const policy = readFileSync(join(ROOT, 'examples/pinned-images/policy.yaml'), 'utf8').replace(
    'variables.unpinned.size() == 0',
    "object.metadata.name != 'stuck in native code'",
  );
  const { stderr } = await started.portcullis(['apply', '-f', '-'], policy);
  assert.match(stderr, /it takes more than 5 s to check/);
  // Not by its own exit: Node waits for each thread.
  assert.equal(await started.end('SIGTERM'), null);
});
