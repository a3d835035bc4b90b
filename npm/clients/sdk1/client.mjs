// Drives an MCP server on stdio with the client of the first official SDK.
//
//     node client.mjs '{"command": "loom", "args": [], "calls": [{"name": "echo", "arguments": {}}]}'
//
// Prints what it was told as one JSON object: the server, the negotiated revision, the tools, and the results.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const plan = JSON.parse(process.argv[2]);
const transport = new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "loom-client-sdk1", version: "1.0.0" });
let revision = null;
transport.setProtocolVersion = (version) => { revision = version; };

await client.connect(transport);
try {
  const { tools } = await client.listTools();
  const results = [];
  for (const call of plan.calls) {
    const progress = [];
    const options = call.progress ? { onprogress: (note) => progress.push(note) } : {};
    const result = await client.callTool({ name: call.name, arguments: call.arguments }, undefined, options);
    results.push({ ...result, progress });
  }
  console.log(JSON.stringify({
    server: client.getServerVersion(), revision, tools: tools.map((tool) => tool.name), results,
  }));
} finally {
  await client.close();
}
