/**
 * All commands, loaded together as soon as one is run: they are descriptions, cheap to read, and one file is read
 * faster than the thirty it would be cut into. What is heavy, each imports when it runs.
 */
import * as commands from './commands/commands.js';
import * as config from './commands/config.js';
import * as demo from './commands/demo.js';
import * as engine from './commands/engine.js';
import * as fields from './commands/fields.js';
import * as help from './commands/help.js';
import * as lists from './commands/lists.js';
import * as messages from './commands/messages.js';
import * as report from './commands/report.js';
import * as send from './commands/send.js';
import * as senders from './commands/senders.js';
import * as subscribers from './commands/subscribers.js';
import * as templates from './commands/templates.js';
import * as version from './commands/version.js';
import * as webhooks from './commands/webhooks.js';
import * as worker from './commands/worker.js';

export {
	commands,
	config,
	demo,
	engine,
	fields,
	help,
	lists,
	messages,
	report,
	send,
	senders,
	subscribers,
	templates,
	version,
	webhooks,
	worker,
};
