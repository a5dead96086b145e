/** A database of PostgreSQL: its server, how durable its commits are, and what is left of its connections. */
import { type Micros, microsPerSecond } from '../../../api/datetime.js';
import { oldestPostgres } from '../../../store/maintenance.js';
import { sizeText, spanText } from '../../render/units.js';
import { noContents } from '../contents-checks.js';
import type { Inspected, InspectedServer } from '../inspection.js';
import { type Check, type CheckEnvironment, ok, problem, skipped, type Verdict, warning } from '../model.js';
import { aheadText, closedFix, judgeSchema } from './database.js';

const clockSlack: Micros = 2 * microsPerSecond;

/** `database.…` of a server; all but the first are skipped where it cannot be looked into. */
export function serverChecks(found: Inspected, { line }: Pick<CheckEnvironment, 'line'>): Check[] {
	const opened = (judge: (database: InspectedServer) => Verdict) => async () =>
		found.kind === 'server' ? judge(found.database) : noContents(found);
	return [
		{ name: 'database.server', run: async () => judgeServer(found, line) },
		{ name: 'database.schema', run: opened(({ schema }) => judgeSchema(schema, line)) },
		{ name: 'database.durability', run: opened(({ server }) => judgeDurability(server)) },
		{ name: 'database.connections', run: opened(({ server }) => judgeConnections(server)) },
		{
			name: 'database.clock',
			run: async () => {
				const ahead = found.kind === 'server' ? ((await found.database.contents?.clockAhead()) ?? 0) : 0;
				if (ahead > 0) return warning(...aheadText("the server's", ahead));
				return found.kind === 'server' ? judgeClock(found.database.server) : noContents(found);
			},
		},
	];
}

function judgeServer(found: Inspected, line: CheckEnvironment['line']): Verdict {
	if (found.kind === 'missing')
		return problem(`there is no database at ${found.path}`, line('engine', 'init', '--db', found.path));
	if (found.kind === 'closed') return problem(found.message, closedFix(found.code));
	if (found.kind === 'open') return skipped('it is a file');
	const { version, major, bytes, isReadOnly, isEncrypted } = found.database.server;
	const says = `PostgreSQL ${version}, ${sizeText(bytes)}, ${isEncrypted ? 'over TLS' : 'without TLS'}`;
	if (isReadOnly)
		return problem(`${says}: it is read-only, a replica or made so`, 'name the primary with --db');
	if (major < oldestPostgres)
		return problem(`${says}: mailctl needs ${oldestPostgres} or newer`, 'upgrade PostgreSQL');
	return ok(says);
}

type Facts = InspectedServer['server'];

function judgeDurability({ synchronousCommit, standbys, replicas }: Facts): Verdict {
	if (synchronousCommit === 'off')
		return problem(
			'synchronous_commit is off: what is acknowledged may be lost when the server fails',
			'ALTER DATABASE … RESET synchronous_commit',
		);
	if (standbys === '' && replicas > 0)
		return warning(
			'commits do not wait for the replicas (synchronous_standby_names is empty): a failover may lose the last',
			"ALTER SYSTEM SET synchronous_standby_names = '*'",
		);
	if (standbys === '')
		return ok(
			'commits wait for the disk of the server; without a synchronous replica a failover may lose the last',
		);
	if (synchronousCommit === 'local')
		return warning(
			`commits do not wait for the replicas (synchronous_commit is local): a failover may lose the last`,
			'ALTER DATABASE … SET synchronous_commit = on',
		);
	return ok(`commits wait for the disk and for ${standbys}`);
}

function judgeConnections({ connections, mostConnections }: Facts): Verdict {
	const says = `${connections} of ${mostConnections} connections are in use`;
	return connections > 0.8 * mostConnections
		? warning(says, 'a smaller ?pool=, a pooler such as PgBouncer, or a larger max_connections')
		: ok(says);
}

function judgeClock({ ahead }: Facts): Verdict {
	const off = spanText(Math.abs(ahead));
	return Math.abs(ahead) > clockSlack
		? warning(
				`the server's clock is ${off} ${ahead > 0 ? 'ahead of' : 'behind'} this machine's`,
				'let NTP keep the clocks of both: timedatectl set-ntp true',
			)
		: ok("the server's clock agrees with this machine's");
}
