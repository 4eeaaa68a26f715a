// What authors and operators of policies do, from a fresh clone, with their commands: clone, `npm start`, then the chapters in order.
// Each step is a command with its exit code and patterns of its output.
//
// Other tests do the rest as users do: test/cli/package.full.test.ts installs the package, test/e2e/image.full.test.ts runs the
// image, test/release/release.full.test.ts makes a release, test/cli/scaffold.test.ts follows the tutorials, and
// test/registry/known-commands.test.ts runs the commands for users of kwctl, kyverno and conftest.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ROOT } from '../cli/command.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { assertStep, type Step } from '../steps/step.ts';
import { AS_APPLIED } from './chapters/as-applied.ts';
import { HABITS } from './chapters/habits.ts';
import { LANGUAGE } from './chapters/language.ts';
import { MANIFESTS } from './chapters/manifests.ts';
import { POD_TEMPLATES } from './chapters/pod-templates.ts';
import { SCAFFOLD } from './chapters/scaffold.ts';
import { TYPES } from './chapters/types.ts';
import { FreshClone } from './fresh-clone.ts';

const CHAPTERS = [SCAFFOLD, AS_APPLIED, MANIFESTS, TYPES, POD_TEMPLATES, LANGUAGE, HABITS];
/** The first port that `start` tries for status and metrics. */
const OPERATIONS_PORT = 8081;
const TERMINAL_WIDTH = 80;

describe('the journey of an author', { skip: skipWithoutCluster(), timeout: 460_000 }, () => {
  const clone = new FreshClone();
  const occupier = createServer();

  before(async () => {
    // When another program has the port, that serves as well.
    occupier.listen(OPERATIONS_PORT, '127.0.0.1');
    await once(occupier, 'listening').catch(() => undefined);
    await clone.create(join(ROOT, 'test', 'journey', 'files'));
  });
  after(async () => {
    occupier.close();
    await clone[Symbol.asyncDispose]();
  });

  async function take(step: Omit<Step, 'shows'>): Promise<void> {
    assertStep(step, await clone.sh(step.sh));
  }

  describe('the first minute', () => {
    it('npm start installs, and greets with a table that fits the terminal and what serves', async () => {
      await clone.start();
      const [, table = ''] = /^(POLICY +MODE [^]*?)\n\n/m.exec(clone.output) ?? [];
      const lines = table.split('\n');
      assert.ok(lines.length > 10, clone.output);
      assert.ok(
        lines.slice(1).every((line) => / Active /.test(line)),
        table,
      );
      assert.ok(
        lines.every(({ length }) => length <= TERMINAL_WIDTH),
        table,
      );
    });

    it('says that a port is taken', () => {
      assert.match(clone.output, new RegExp(`^Port ${OPERATIONS_PORT} is in use, trying the next one…$`, 'm'));
    });

    it('npx and the linked command are the same', async () => {
      const linked = await clone.link();
      assert.equal(linked.code, 0, linked.output);
      await take({
        sh: 'npx portcullis version --client && portcullis version --client',
        prints: [/^(Client Version: v\d\S*)\n\1$/m],
      });
    });
  });

  for (const { title, steps } of CHAPTERS) {
    describe(title, () => {
      for (const step of steps) {
        it(step.shows, () => take(step));
      }
    });
  }

  describe('the end', () => {
    it('SIGTERM to npm ends the product, whose data can be removed then', async () => {
      await clone.end();
      await eventually(() => take({ sh: 'cd .. && npm run reset', prints: [/^Removed /m] }), { timeoutMs: 30_000 });
    });
  });
});
