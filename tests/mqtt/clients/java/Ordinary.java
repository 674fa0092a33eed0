// HiveMQ's client as its documentation has it: blocking, in 3.1.1 and 5.0, over TCP, TLS and WebSocket. Prints each step.
import com.hivemq.client.mqtt.MqttClient;
import com.hivemq.client.mqtt.MqttGlobalPublishFilter;
import com.hivemq.client.mqtt.datatypes.MqttQos;
import com.hivemq.client.mqtt.mqtt3.Mqtt3BlockingClient;
import com.hivemq.client.mqtt.mqtt5.Mqtt5BlockingClient;
import com.hivemq.client.mqtt.mqtt5.Mqtt5ClientBuilder;
import com.hivemq.client.mqtt.mqtt5.message.publish.Mqtt5Publish;
import java.io.FileInputStream;
import java.nio.ByteBuffer;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.TrustManagerFactory;

public final class Ordinary {
    static int port(String name) {
        return Integer.parseInt(System.getenv("GODWIT_" + name + "_PORT"));
    }

    static TrustManagerFactory trust() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream file = new FileInputStream(System.getenv("GODWIT_CA_FILE"))) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory;
    }

    static Mqtt5ClientBuilder five(String door) throws Exception {
        Mqtt5ClientBuilder builder = MqttClient.builder().useMqttVersion5().serverHost("localhost");
        return switch (door) {
            case "tcp" -> builder.serverPort(port("MQTT"));
            case "tls" -> builder.serverPort(port("MQTT_TLS")).sslConfig().trustManagerFactory(trust()).applySslConfig();
            default -> builder.serverPort(port("CLIENT")).webSocketConfig().serverPath("mqtt").applyWebSocketConfig();
        };
    }

    static Mqtt5Publish take(Mqtt5BlockingClient.Mqtt5Publishes publishes) throws Exception {
        return publishes.receive(20, TimeUnit.SECONDS).orElseThrow();
    }

    static void check(boolean is, String what) {
        if (!is) throw new AssertionError(what);
    }

    static void sendEachQos(String door) throws Exception {
        Mqtt5BlockingClient client = five(door).buildBlocking();
        client.connect();
        byte[] payload = new byte[100_000];
        Arrays.fill(payload, (byte) 7);
        try (var publishes = client.publishes(MqttGlobalPublishFilter.ALL)) {
            client.subscribeWith().topicFilter("java/" + door + "/#").qos(MqttQos.EXACTLY_ONCE).send();
            for (MqttQos qos : MqttQos.values()) {
                client.publishWith().topic("java/" + door + "/" + qos.getCode()).qos(qos).payload(payload).send();
                Mqtt5Publish got = take(publishes);
                check(got.getQos() == qos && Arrays.equals(got.getPayloadAsBytes(), payload), door + " " + qos);
            }
        }
        client.disconnect();
        System.out.println(door);
    }

    static void keepSession() throws Exception {
        Mqtt5BlockingClient client = five("tcp").identifier("java-session").buildBlocking();
        client.connectWith().cleanStart(false).sessionExpiryInterval(600).send();
        client.subscribeWith().topicFilter("java/session").qos(MqttQos.AT_LEAST_ONCE).send();
        client.disconnect();
        Mqtt5BlockingClient sender = five("tcp").buildBlocking();
        sender.connect();
        for (int n = 0; n < 20; n++) {
            sender.publishWith().topic("java/session").qos(MqttQos.AT_LEAST_ONCE).payload(("" + n).getBytes()).send();
        }
        try (var publishes = client.publishes(MqttGlobalPublishFilter.ALL)) {
            check(client.connectWith().cleanStart(false).sessionExpiryInterval(600).send().isSessionPresent(), "present");
            for (int n = 0; n < 20; n++) check(new String(take(publishes).getPayloadAsBytes()).equals("" + n), "order");
        }
        client.disconnect();
        sender.disconnect();
        System.out.println("session");
    }

    static void askAndRetain() throws Exception {
        Mqtt5BlockingClient asker = five("tcp").buildBlocking(), responder = five("tcp").buildBlocking();
        asker.connect();
        responder.connectWith().willPublish().topic("java/will").payload("never".getBytes()).applyWillPublish().send();
        try (var asked = responder.publishes(MqttGlobalPublishFilter.ALL);
                var answers = asker.publishes(MqttGlobalPublishFilter.ALL)) {
            responder.subscribeWith().topicFilter("java/ask").qos(MqttQos.AT_LEAST_ONCE).send();
            asker.subscribeWith().topicFilter("java/answers").qos(MqttQos.AT_LEAST_ONCE).send();
            asker.publishWith().topic("java/ask").qos(MqttQos.AT_LEAST_ONCE).responseTopic("java/answers")
                    .correlationData(new byte[] {1, 2}).userProperties().add("a", "b").applyUserProperties().send();
            Mqtt5Publish question = take(asked);
            ByteBuffer token = question.getCorrelationData().orElseThrow();
            responder.publishWith().topic(question.getResponseTopic().orElseThrow()).qos(MqttQos.EXACTLY_ONCE)
                    .correlationData(token).retain(true).payload("!".getBytes()).send();
            Mqtt5Publish answer = take(answers);
            check(answer.getCorrelationData().isPresent() && !answer.isRetain(), "answer");
            responder.subscribeWith().topicFilter("java/answers").qos(MqttQos.AT_MOST_ONCE).send();
            check(take(asked).isRetain(), "retained");
            responder.publishWith().topic("java/answers").retain(true).send();
        }
        asker.disconnect();
        responder.disconnect();
        System.out.println("request, response, retained");
    }

    static void share() throws Exception {
        List<Mqtt5BlockingClient> members = List.of(five("tcp").buildBlocking(), five("tcp").buildBlocking());
        List<Mqtt5BlockingClient.Mqtt5Publishes> queues = new ArrayList<>();
        for (var member : members) {
            member.connect();
            queues.add(member.publishes(MqttGlobalPublishFilter.ALL));
            member.subscribeWith().topicFilter("$share/java/java/work").qos(MqttQos.AT_LEAST_ONCE).send();
        }
        for (int n = 0; n < 20; n++) {
            members.get(0).publishWith().topic("java/work").qos(MqttQos.AT_LEAST_ONCE).payload(("" + n).getBytes()).send();
        }
        boolean[] seen = new boolean[20];
        for (var queue : queues) {
            for (int n = 0; n < 10; n++) seen[Integer.parseInt(new String(take(queue).getPayloadAsBytes()))] = true;
            queue.close();
        }
        for (boolean is : seen) check(is, "each once");
        for (var member : members) member.disconnect();
        System.out.println("shared");
    }

    static void three() throws Exception {
        Mqtt3BlockingClient client =
                MqttClient.builder().useMqttVersion3().serverHost("localhost").serverPort(port("MQTT")).buildBlocking();
        client.connectWith().cleanSession(true).keepAlive(10).send();
        try (var publishes = client.publishes(MqttGlobalPublishFilter.ALL)) {
            client.subscribeWith().topicFilter("java/three").qos(MqttQos.EXACTLY_ONCE).send();
            client.publishWith().topic("java/three").qos(MqttQos.EXACTLY_ONCE).payload("3".getBytes()).send();
            check(publishes.receive(20, TimeUnit.SECONDS).orElseThrow().getQos() == MqttQos.EXACTLY_ONCE, "3.1.1");
        }
        client.disconnect();
        System.out.println("3.1.1");
    }

    public static void main(String[] arguments) throws Exception {
        for (String door : List.of("tcp", "tls", "websocket")) sendEachQos(door);
        keepSession();
        askAndRetain();
        share();
        three();
        System.exit(0);
    }
}
