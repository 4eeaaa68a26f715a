// The commands of the program, grouped by purpose.
import type { Command } from 'commander';
import { CliError } from '../errors.ts';

interface CommandEntry {
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** By heading and name. Loaded lazily for a fast start: help and suggestions need the summaries only. */
export const COMMAND_GROUPS: Readonly<Record<string, Readonly<Record<string, CommandEntry>>>> = {
  'Try it:': {
    start: {
      summary: 'run a local cluster for kubectl, with a policy server for its policies',
      load: async () => (await import('../start/start.ts')).startCommand(),
    },
    reset: {
      summary: 'remove the data of `start`',
      load: async () => (await import('../start/reset.ts')).resetCommand(),
    },
    completion: {
      summary: 'print a completion script for a shell',
      load: async () =>
        (await import('../completion.ts')).completionCommand(() => Promise.all(OTHERS.map(loadCommand))),
    },
    version: {
      summary: 'print the versions of this program and of the cluster',
      load: async () => (await import('./version.ts')).versionCommand(),
    },
  },
  'Write and test policies:': {
    scaffold: {
      summary: 'write a new policy with its tests; print a manifest or a request',
      load: async () => (await import('../scaffold/scaffold.ts')).scaffoldCommand(),
    },
    run: {
      summary: 'evaluate a request by a policy',
      load: async () => (await import('../policy/run.ts')).runCommand(),
    },
    test: {
      summary: 'run tests of policies',
      load: async () => (await import('../policy-tests/test.ts')).testCommand(),
    },
    inspect: {
      summary: 'show the metadata of a module, and how the sandbox runs it',
      load: async () => (await import('../module/inspect.ts')).inspectCommand(),
    },
    annotate: {
      summary: 'write the metadata of a policy into its module',
      load: async () => (await import('../module/annotate.ts')).annotateCommand(),
    },
    bench: {
      summary: 'measure how fast a policy is',
      load: async () => (await import('../policy/bench.ts')).benchCommand(),
    },
    export: {
      summary: 'print policies of builtin:cel for the API server',
      load: async () => (await import('../policy/export.ts')).exportCommand(),
    },
  },
  'Look at a cluster and change it:': {
    get: {
      summary: 'show objects of a cluster; without arguments, all of our kinds',
      load: async () => (await import('../cluster/get.ts')).getCommand(),
    },
    describe: {
      summary: 'show objects in detail, with conditions and events',
      load: async () => (await import('../describe/describe.ts')).describeCommand(),
    },
    explain: {
      summary: 'say why an object is pending, not compliant or not as declared, and what to do',
      load: async () => (await import('../explain/explain.ts')).explainCommand(),
    },
    events: {
      summary: 'show the events of a namespace, or of one object',
      load: async () => (await import('../cluster/events.ts')).eventsCommand(),
    },
    audit: {
      summary: 'say which existing objects policies would reject',
      load: async () => (await import('../audit/audit.ts')).auditCommand(),
    },
    findings: {
      summary: 'show what the auditor of a cluster found',
      load: async () => (await import('../findings/findings.ts')).findingsCommand(),
    },
    apply: {
      summary: 'apply manifests (server-side apply)',
      load: async () => (await import('../cluster/apply.ts')).applyCommand(),
    },
    patch: {
      summary: 'change fields of an object',
      load: async () => (await import('../cluster/patch.ts')).patchCommand(),
    },
    delete: { summary: 'delete objects', load: async () => (await import('../cluster/delete.ts')).deleteCommand() },
    wait: {
      summary: 'wait until objects have a condition, or are deleted',
      load: async () => (await import('../cluster/wait.ts')).waitCommand(),
    },
    rollout: {
      summary: 'revisions of a policy: history, status, diff, undo, pin',
      load: async () => (await import('../rollout/rollout.ts')).rolloutCommand(),
    },
  },
  'Governance and network policies:': {
    dryrun: {
      summary: 'evaluate governance policies without changing anything',
      load: async () => (await import('../governance/dryrun/dryrun.ts')).dryrunCommand(),
    },
    governance: {
      summary: 'show how governance policies depend on each other',
      load: async () => (await import('../governance/governance.ts')).governanceCommand(),
    },
    netpol: {
      summary: 'say which network provider does what NetworkPolicies say',
      load: async () => (await import('../netpol/netpol.ts')).netpolCommand(),
    },
  },
  'Registries and modules:': {
    pull: {
      summary: 'download a module into the cache',
      load: async () => (await import('../module/pull.ts')).pullCommand(),
    },
    push: {
      summary: 'store a module in a registry',
      load: async () => (await import('../module/push.ts')).pushCommand(),
    },
    verify: {
      summary: 'verify the signatures of a policy in a registry',
      load: async () => (await import('../module/verify.ts')).verifyCommand(),
    },
    digest: {
      summary: 'print a reference with the digest that its tag has now',
      load: async () => (await import('../module/digest.ts')).digestCommand(),
    },
    save: {
      summary: 'write policies of registries to a tarball',
      load: async () => (await import('../module/save.ts')).saveCommand(),
    },
    load: {
      summary: 'copy the modules of a tarball into the cache',
      load: async () => (await import('../module/load.ts')).loadCommand(),
    },
    policies: {
      summary: 'list the modules in the cache',
      load: async () => (await import('../module/policies.ts')).policiesCommand(),
    },
    rm: { summary: 'remove a module from the cache', load: async () => (await import('../module/rm.ts')).rmCommand() },
  },
  'Install and operate:': {
    install: {
      summary: 'install Portcullis on a cluster, or upgrade it',
      load: async () => (await import('../install/install.ts')).installCommand(),
    },
    'break-glass': {
      summary: 'in an emergency: let requests pass without a policy, or without any',
      load: async () => (await import('../break-glass/break-glass.ts')).breakGlassCommand(),
    },
    doctor: {
      summary: 'find problems of an installation, and say what to do',
      load: async () => (await import('../install/doctor.ts')).doctorCommand(),
    },
    uninstall: {
      summary: 'remove Portcullis from a cluster',
      load: async () => (await import('../install/uninstall.ts')).uninstallCommand(),
    },
    auditor: {
      summary: 'judge existing objects of a cluster whenever they, or policies, change',
      load: async () => (await import('../auditor/auditor.ts')).auditorCommand(),
    },
    controller: {
      summary: 'roll the policies of a cluster out to its policy servers',
      load: async () => (await import('../controller/controller.ts')).controllerCommand(),
    },
    serve: {
      summary: 'serve policies over HTTPS: the policy server',
      load: async () => (await import('../serve/serve.ts')).serveCommand(),
    },
    requests: {
      summary: 'print the requests that a policy server on this machine has recorded',
      load: async () => (await import('../serve/requests.ts')).requestsCommand(),
    },
  },
};

/** Commands that only `start` runs. They are in no list. */
const INTERNAL: Readonly<Record<string, CommandEntry>> = {
  apiserver: {
    summary: 'the API server of `start`',
    load: async () => (await import('../start/apiserver.ts')).apiserverCommand(),
  },
};

const LISTED: ReadonlyMap<string, CommandEntry> = new Map(Object.values(COMMAND_GROUPS).flatMap(Object.entries));
const COMMANDS: ReadonlyMap<string, CommandEntry> = new Map([...LISTED, ...Object.entries(INTERNAL)]);
const OTHERS = [...LISTED.keys()].filter((name) => name !== 'completion');

export function isCommand(word: string): boolean {
  return COMMANDS.has(word);
}

/** @throws CliError when there is no such command */
export async function loadCommand(name: string): Promise<Command> {
  const entry = COMMANDS.get(name);
  if (entry === undefined) {
    throw new CliError(`unknown command ${name}`);
  }
  return await entry.load();
}
