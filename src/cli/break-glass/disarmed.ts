// `portcullis break-glass status`: what is disarmed, and why.
import { Command } from 'commander';
import { listAll } from '../../cluster/index.ts';
import { ANNOTATIONS, keyOf, POLICY_KINDS, POLICY_SERVERS, type ResourceType } from '../../resources/index.ts';
import { addConnectionFlags, type ClusterFlags, connect } from '../cluster/cluster-flags.ts';
import { objectName } from '../cluster/resource-arguments.ts';
import { oneLine } from '../table.ts';

export function disarmedCommand(): Command {
  return addConnectionFlags(
    new Command('status').description('show which policies and PolicyServers are disarmed, and why'),
  )
    .addHelpText('after', '\nExample:\n  portcullis break-glass status')
    .action(status);
}

async function status(flags: ClusterFlags): Promise<void> {
  using connected = await connect(flags);
  const lines: string[] = [];
  const types: readonly ResourceType[] = [POLICY_SERVERS, ...POLICY_KINDS];
  for (const type of types) {
    for (const object of (await listAll(connected.cluster, type, {})).items) {
      const reason = object.metadata.annotations?.[ANNOTATIONS.disarmed];
      const { name, namespace } = keyOf(object);
      const place = namespace === undefined ? '' : ` -n ${namespace}`;
      lines.push(...(reason === undefined ? [] : [oneLine(`${objectName(type, name)}${place}: ${reason}`)]));
    }
  }
  process.stdout.write(lines.length === 0 ? 'Nothing is disarmed.\n' : `${lines.join('\n')}\n`);
}
